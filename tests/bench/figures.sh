#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All figures of docs/performance.md, on this machine: the table with peers, the same by
# clang, what -Dnative and -Dprofiling change, and the plot.
#
#   tests/bench/figures.sh [--peers FOLDER] [--plot FILE] [--out FOLDER]
#
# --peers: where tests/bench/peers/build.sh put them (~/.cache/mlkemd/peers)
# --plot: also write the plot there (docs/cost.svg is the one that is shown)
# --out: builds and results (build-figures); CLANG names a clang, 16 or newer.
# Takes about four minutes, of which the measuring is one. Nothing is judged.
set -eu

peers=${XDG_CACHE_HOME:-$HOME/.cache}/mlkemd/peers
plot='' out=build-figures
while [ $# -gt 0 ]; do
	case $1 in
	--peers) peers=$2 ;;
	--plot) plot=$2 ;;
	--out) out=$2 ;;
	*) sed -n '3,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
	shift 2
done
cd "$(dirname "$0")/../.."
mkdir -p "$out"

clang=${CLANG:-$(command -v clang-19 || command -v clang-16 || true)}

# In front of others and on one CPU, where that is allowed.
first=
chrt -f 10 true 2>/dev/null && first="chrt -f 10"
cpu=$(($(nproc) - 1))

bench() { # BUILD ARGUMENTS...
	build=$1
	shift
	$first taskset -c "$cpu" "$out/$build/tools/mlkem-bench/mlkem-bench" "$@"
}

build() { # NAME COMPILER OPTIONS...
	name=$1 cc=$2
	shift 2
	[ -d "$out/$name/meson-info" ] || CC=$cc meson setup "$out/$name" \
		--buildtype=release -Dtests=false "$@" >"$out/$name.log"
	ninja -C "$out/$name" tools/mlkem-bench/mlkem-bench >>"$out/$name.log"
}

builds="gcc profiling native"
build gcc gcc
build profiling gcc -Dprofiling=true
build native gcc -Dnative=true
if [ -n "$clang" ]; then
	builds="$builds clang clang-native"
	build clang "$clang"
	build clang-native "$clang" -Dnative=true
else
	echo "no clang of 16 or newer: nothing by clang" >&2
fi

table() { # BUILD ARGUMENTS...
	build=$1
	shift
	bench "$build" --batch 1,8,64 --repeats 9 --duration 6 "$@" 'keccak*' 'x25519*' \
		'hybrid*' '*/512' '*/768' '*/1024'
}

if [ -d "$peers" ]; then
	table gcc --peers="$peers" >"$out/table.txt"
else
	echo "no peers in $peers: nothing beside ours" >&2
	table gcc >"$out/table.txt"
fi
[ -z "$clang" ] || table clang >"$out/clang.txt"

# The builds take turns, so that a busy minute is everybody's.
: >"$out/builds.txt"
for _ in 1 2 3 4 5; do
	for name in $builds; do
		bench "$name" --json --batch 1,8 --repeats 3 --duration 6 keygen/768 \
			decaps/768 keccak | sed -n "s/.*{/{\"build\":\"$name\",/p" \
			>>"$out/builds.txt"
	done
done

[ -z "$plot" ] || bench gcc --repeats 7 --duration 4 --plot "$plot" keygen/768 \
	encaps/768 decaps/768 >/dev/null
/usr/bin/python3 - "$out" <<'END'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1] + "/builds.txt"):
    row = json.loads(line.strip().rstrip(",]"))
    if "us" in row:
        key = row["op"], row["backend"], row["batch"]
        rows.setdefault(key, {}).setdefault(row["build"], []).append(row["us"])
builds = list(dict.fromkeys(b for row in rows.values() for b in row))
print("\nmedians of five, us an item:", " ".join(builds))
for (op, backend, batch), row in rows.items():
    print(f"{op:8} {backend:8} {batch:3}",
          " ".join(f"{statistics.median(row[b]):8.4f}" for b in builds))
END
echo "in $out: table.txt, clang.txt, builds.txt"
