# SPDX-License-Identifier: Apache-2.0
"""What is measured, and the configuration files that this takes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    group: str
    root: str = "host"      # whose nginx, HAProxy and OpenSSL
    route: str = ""         # of the provider; "": it is not loaded
    leases: int = 0
    backend: str = ""       # MLKEMD_BACKEND of the proxy; "": the best one
    client: bool = False    # the proxy is the TLS client

    def uses_daemon(self):
        return self.route in ("daemon", "auto")


HYBRID, PQ = "X25519MLKEM768", "MLKEM768"

CASES = [
    Case("x25519", "X25519"),
    Case("hybrid-local", HYBRID, route="local"),
    Case("hybrid-daemon", HYBRID, route="daemon"),
    Case("hybrid-auto", HYBRID, route="auto"),
    Case("pq-local", PQ, route="local"),
    Case("pq-daemon", PQ, route="daemon"),
    Case("pq-auto", PQ, route="auto"),
    Case("openssl35-hybrid", HYBRID, root="debian-13"),
    Case("openssl35-pq", PQ, root="debian-13"),
    Case("client-x25519", "X25519", client=True),
    Case("client-hybrid-local-avx2", HYBRID, route="local", backend="avx2", client=True),
    Case("client-hybrid-local-avx512", HYBRID, route="local", backend="avx512",
         client=True),
    Case("client-hybrid-daemon", HYBRID, route="daemon", client=True),
    Case("client-hybrid-leases", HYBRID, route="daemon", leases=32, client=True),
    Case("client-hybrid-auto", HYBRID, route="auto", client=True),
    Case("client-pq-local", PQ, route="local", client=True),
    Case("client-pq-leases", PQ, route="daemon", leases=32, client=True),
    Case("client-openssl35-hybrid", HYBRID, root="debian-13", client=True),
]


def openssl_cnf(case, module, socket):
    """For this case: the provider, or nothing but the group."""
    provider = "" if not case.route else f"""
[providers]
default = default_provider
mlkemd = mlkemd_provider
[default_provider]
activate = 1
[mlkemd_provider]
activate = 1
module = {module}
socket = {socket}
route = {case.route}
leases = {case.leases}
"""
    return f"""openssl_conf = init
[init]
{"providers = providers" if case.route else ""}
ssl_conf = ssl
[ssl]
system_default = system_default
[system_default]
MinProtocol = TLSv1.3
Groups = {case.group}
{provider}"""


def nginx_frame(directory, workers, server):
    temp = "".join(f"\t{name}_temp_path {directory}/tmp;\n" for name in
                   ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
user root;
worker_processes {workers};
pid {directory}/nginx-{workers}-{abs(hash(server))}.pid;
env MLKEMD_BACKEND;
env OPENSSL_CONF;
error_log stderr crit;
events {{
	worker_connections 4096;
}}
http {{
	access_log off;
{temp}	server {{
{server}	}}
}}
"""


def nginx_server(case, directory, workers, port):
    return nginx_frame(directory, workers, f"""		listen 127.0.0.1:{port} ssl;
		ssl_certificate {directory}/cert.pem;
		ssl_certificate_key {directory}/key.pem;
		ssl_protocols TLSv1.3;
		ssl_ecdh_curve {case.group};
		location / {{
			return 200 "ok\\n";
		}}
""")


def nginx_client(case, directory, workers, port, upstream):
    return nginx_frame(directory, workers, f"""		listen 127.0.0.1:{port};
		location / {{
			proxy_pass https://127.0.0.1:{upstream};
			proxy_ssl_session_reuse off;
			proxy_ssl_protocols TLSv1.3;
			proxy_ssl_conf_command Groups {case.group};
		}}
""")


def haproxy_frame(front, back):
    return f"""global
	nbthread 1
	maxconn 4096
	ssl-default-bind-options ssl-min-ver TLSv1.3
	ssl-default-server-options ssl-min-ver TLSv1.3
	ssl-server-verify none
defaults
	mode http
	timeout client 30s
	timeout connect 30s
	timeout server 30s
frontend front
{front}{back}"""


def haproxy_server(case, directory, workers, port):
    group = case.group
    return haproxy_frame(f"""	bind 127.0.0.1:{port} ssl crt {directory}/both.pem curves {group}
	http-request return status 200 content-type text/plain string ok
""", "")


def haproxy_client(case, directory, workers, port, upstream):
    return haproxy_frame(f"""	bind 127.0.0.1:{port}
	default_backend back
""", f"""backend back
	http-reuse never
	option http-server-close
	server one 127.0.0.1:{upstream} ssl verify none no-ssl-reuse
""")


def write(kind, case, directory, workers, port, upstream):
    """The configuration of kind "nginx" or "haproxy" for a case."""
    if case.client:
        function = nginx_client if kind == "nginx" else haproxy_client
        return function(case, directory, workers, port, upstream)
    function = nginx_server if kind == "nginx" else haproxy_server
    return function(case, directory, workers, port)


def upstream(directory, port):
    """What the proxies of the client cases connect to: OpenSSL 3.5, any of the groups."""
    case = Case("upstream", "X25519:X25519MLKEM768:MLKEM768", root="debian-13")
    return nginx_server(case, directory, 1, port)
