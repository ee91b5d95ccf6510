#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The manual pages as HTML, by mandoc: man_html.py MANDOC DIRECTORY PAGE...

Pages that are made here link to each other, others are named only: no link is dead.
index.html lists them with what they are about.
"""

import html
import pathlib
import re
import subprocess
import sys

STYLE = """\
body { max-width: 46em; margin: 2em auto; padding: 0 1em; line-height: 1.45;
       font-family: sans-serif; color: #222; background: #fff; }
pre, code, .Fl, .Cm, .Nm, .Pa, .Ic { font-family: monospace; }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; }
table.head, table.foot { width: 100%; color: #666; }
td.head-vol { text-align: center; }
td.head-rtitle, td.foot-os { text-align: right; }
.Bl-tag > dd { margin-left: 3em; }
.Bl-column td { padding-right: 2em; vertical-align: top; }
h1 { font-size: 1.2em; border-bottom: 1px solid #ccc; } h2 { font-size: 1em; }
a.permalink { color: inherit; text-decoration: none; }
"""
FRAME = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mlkemd: manual pages</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<h1>mlkemd: manual pages</h1>
<dl class="Bl-tag">
{rows}</dl>
</body>
</html>
"""
LINK = re.compile(r'<a class="Xr" href="([^"]*)"([^>]*)>(.*?)</a>', re.S)


def page_html(mandoc, page, names):
    """One page; of its links to other pages those that would be dead become text."""
    text = subprocess.run([mandoc, "-Thtml", "-Ostyle=style.css,man=%N.%S.html", page],
                          check=True, capture_output=True, text=True).stdout

    def link(found):
        if found[1] in names:
            return found[0]
        return f'<span class="Xr">{found[3]}</span>'
    return LINK.sub(link, text)


def index_html(pages):
    rows = ""
    for page in pages:
        about = re.search(r"^\.Nd (.*)$", page.read_text(), re.M)[1]
        name = f"{page.stem}({page.suffix[1:]})"
        rows += (f'<dt><a href="{page.name}.html">{html.escape(name)}</a></dt>'
                 f"<dd>{html.escape(about)}</dd>\n")
    return FRAME.format(rows=rows)


def main():
    mandoc, directory, *names = sys.argv[1:]
    directory = pathlib.Path(directory)
    pages = sorted(map(pathlib.Path, names), key=lambda page: (page.suffix, page.name))
    made = {page.name + ".html" for page in pages}
    for page in pages:
        (directory / (page.name + ".html")).write_text(page_html(mandoc, page, made))
    (directory / "style.css").write_text(STYLE)
    (directory / "index.html").write_text(index_html(pages))


if __name__ == "__main__":
    main()
