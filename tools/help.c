/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "ctl.h"

static const char help_all[] =
    "mlkemctl: post-quantum key exchange through mlkemd, by hand\n"
    "\n"
    "usage: mlkemctl SUBCOMMAND [ALGORITHM] [OPTIONS]\n"
    "       mlkemctl tls HOST:PORT [OPTIONS]\n"
    "       mlkemctl help SUBCOMMAND\n"
    "\n"
    "is it there?\n"
    "  ping       one round trip to the daemon\n"
    "  info       its version, backend, secret memory, pools and limits\n"
    "exchange a key\n"
    "  keygen     make a key pair, show its share, wait for the answer\n"
    "  encaps     answer a share: a ciphertext share, and the same secret\n"
    "  decaps     open a ciphertext share with a private key that was exported\n"
    "  demo       two parties, one exchange; then a thousand, with their cost\n"
    "measure\n"
    "  bench      a load on the daemon: times, throughput, processor time, batches\n"
    "look at a server\n"
    "  tls        what a TLS server does with a post-quantum ClientHello\n"
    "configure programs that use OpenSSL\n"
    "  openssl-conf  this machine's openssl.cnf, with the provider\n"
    "look after the daemon (control socket: root and the daemon's user)\n"
    "  selftest   known answers through its backend\n"
    "  stats      its counters\n"
    "  reload     read the configuration again\n"
    "  drain      take no new operations; resume ends that\n"
    "  resume     serve again\n"
    "  top        what it does now, every second\n"
    "  doctor     what keeps it from being reachable, safe or fast, and what to type\n"
    "\n"
    "everywhere\n"
    "  --json                one object a line on standard output\n"
    "  --socket PATH         the daemon's socket (/run/mlkemd/mlkemd.sock)\n"
    "  --control-socket PATH (/run/mlkemd/control.sock)\n"
    "  --timeout-ms N        give up after so long (1000)\n"
    "  --help, --version\n"
    "\n"
    "ALGORITHM is X25519MLKEM768 unless you name ML-KEM-512, ML-KEM-768 or\n"
    "ML-KEM-1024 (mlkem768, ML_KEM_768: any spelling).\n"
    "\n"
    "exit status: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 denied,\n"
    "5 a share, ciphertext or key was refused, 6 busy: try again later.\n"
    "\n"
    "a whole exchange, in two terminals:\n"
    "  first$  mlkemctl keygen --out share --peer answer\n"
    "  second$ mlkemctl encaps --in share --out answer\n"
    "Both print the same fingerprint: the first 8 bytes of SHA-256 of the secret.\n";

static const char help_ping[] =
    "mlkemctl ping: one round trip to the daemon\n"
    "\n"
    "  --count N        so many, with minimum, median and maximum\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ mlkemctl ping --count 100\n"
    "  $ mlkemctl ping --timeout-ms 200 || echo \"status $?\"\n"
    "\n"
    "Exit status 3 means that no mlkemd answers there. Nothing falls back here.\n";

static const char help_info[] =
    "mlkemctl info: what the daemon says of itself\n"
    "\n"
    "Version, backend and its lanes, how secrets are kept in memory (memfd_secret,\n"
    "mlock or off), what is ready in the pool, limits, whether keys may be exported.\n"
    "\n"
    "  --local          the code in this process instead: no daemon is asked\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ mlkemctl info\n"
    "  $ mlkemctl info --json | jq -r .backend\n";

static const char help_keygen[] =
    "mlkemctl keygen [ALGORITHM]: the initiator's side of an exchange\n"
    "\n"
    "Makes a key pair, prints the public share, waits for the peer's ciphertext share\n"
    "on standard input (or in --peer FILE, which need not exist yet) and prints the\n"
    "fingerprint of the secret. The private key stays in the daemon and dies with this\n"
    "command's connection, at most a minute later: that is why it waits.\n"
    "\n"
    "  --out FILE        the share goes there (raw) and not to standard output\n"
    "  --peer FILE       wait for the answer in this file (or named pipe)\n"
    "  --secret-out FILE the secret itself, in a new file of mode 0600\n"
    "  --export FILE     no exchange: write the private key there, mode 0600. Needs\n"
    "                    `export-private-keys = yes` in section [kem] of mlkemd.conf\n"
    "  --format F        hex, base64 or raw, for all that is written (else hex on\n"
    "                    standard output and raw in files)\n"
    "  --in-format F     of what is read (else it is seen by looking)\n"
    "  --local           compute in this process; --require: only in the daemon\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "by hand: paste the share into the other terminal, and the answer back\n"
    "  $ mlkemctl keygen\n"
    "by files, with ML-KEM-768 alone, keeping the secret\n"
    "  $ mlkemctl keygen mlkem768 --out share --peer answer --secret-out key.bin\n"
    "  $ mlkemctl encaps mlkem768 --in share --out answer --secret-out peer.bin\n"
    "a key for later\n"
    "  $ mlkemctl keygen --export key --out share\n"
    "\n"
    "A wrong answer of the right length is no error: the secret is then another, by\n"
    "design (implicit rejection), and the two fingerprints differ.\n";

static const char help_encaps[] =
    "mlkemctl encaps [ALGORITHM]: the responder's side of an exchange\n"
    "\n"
    "Reads the peer's public share from standard input or --in FILE, prints the\n"
    "ciphertext share to send back, and the fingerprint of the secret.\n"
    "\n"
    "  --in FILE         the share: hex, base64 or raw, seen by looking\n"
    "  --out FILE        the ciphertext share goes there (raw)\n"
    "  --secret-out FILE the secret itself, in a new file of mode 0600\n"
    "  --format F        hex, base64 or raw, for all that is written\n"
    "  --in-format F     of what is read\n"
    "  --local           compute in this process; --require: only in the daemon\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ mlkemctl encaps --in share --out answer\n"
    "  $ mlkemctl encaps --format raw <share >answer   (fingerprint on stderr)\n"
    "\n"
    "A share is checked as FIPS 203 section 7.2 says; a bad one is exit status 5.\n";

static const char help_decaps[] =
    "mlkemctl decaps [ALGORITHM] --key FILE: open a ciphertext share with a private key\n"
    "\n"
    "The key is one that was exported (mlkemctl keygen --export FILE): in its expanded\n"
    "form, or its seed. A key that stays in the daemon dies with its connection and\n"
    "can't be used here: `mlkemctl keygen` waits for the ciphertext itself.\n"
    "\n"
    "  --key FILE        the private key; never a value on the command line\n"
    "  --in FILE         the ciphertext share, else from standard input\n"
    "  --secret-out FILE the secret itself, in a new file of mode 0600\n"
    "  --in-format F     hex, base64 or raw (else seen by looking)\n"
    "  --local           compute in this process; --require: only in the daemon\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ mlkemctl keygen --export key --out share\n"
    "  $ mlkemctl encaps --in share --out answer\n"
    "  $ mlkemctl decaps --key key --in answer\n"
    "\n"
    "Where the daemon keeps its keys to itself, keygen --export says so: the\n"
    "configuration key is `export-private-keys` in section [kem]. decaps needs no\n"
    "such leave, since the key is yours already.\n";

static const char help_selftest[] =
    "mlkemctl selftest: known answers through the daemon's backend\n"
    "\n"
    "Key generation, encapsulation, decapsulation, rejection, X25519, hybrid. A failure\n"
    "names the step and is exit status 1.\n"
    "\n"
    "  --local          the code in this process instead\n"
    "  --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl selftest\n";

static const char help_stats[] =
    "mlkemctl stats: the daemon's counters, summed over its shards\n"
    "\n"
    "One name and value a line; docs/operations.md says what each counts. mean_batch\n"
    "is group_items_total / groups_total: items that a kernel worked on at once, 1 to 8.\n"
    "\n"
    "  --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl stats --json | jq .pool_hybrid\n";

static const char help_reload[] =
    "mlkemctl reload: read the configuration again, as SIGHUP does\n"
    "\n"
    "A mistake in it changes nothing and is told: file, line, key and what is allowed.\n"
    "\n"
    "  --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemd --check && sudo mlkemctl reload\n";

static const char help_drain[] =
    "mlkemctl drain: take no new operations; mlkemctl resume: serve again\n"
    "\n"
    "While it drains, keys already given out still decapsulate, and clients compute in\n"
    "their own process unless they require the daemon.\n"
    "\n"
    "  --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl drain && sleep 60 && sudo systemctl restart mlkemd\n";

static const char help_top[] =
    "mlkemctl top: what the daemon does now\n"
    "\n"
    "  --interval-ms N  between two looks (1000)\n"
    "  --count N        so many looks, then ends; without it until Ctrl-C\n"
    "  --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl top\n"
    "  $ sudo mlkemctl top --json --count 1 --interval-ms 10000\n";

static const char help_doctor[] =
    "mlkemctl doctor: what keeps mlkemd from being reachable, safe or fast here\n"
    "\n"
    "Looks at daemon, socket, processor, secret memory, pool, limits, the users of the\n"
    "proxies that are installed, and the provider, and says what to type. It changes\n"
    "nothing. Run it as root: only root can try the users.\n"
    "\n"
    "  --socket PATH, --control-socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl doctor\n"
    "\n"
    "Exit status 1 if something does not work; what could be better is no failure.\n";

static const char help_bench[] =
    "mlkemctl bench [ALGORITHM]: a load on the daemon, and what it costs\n"
    "\n"
    "Four rows, round by round: 64 connections with a request each, one with 64, lone\n"
    "calls back to back, and 10 ms apart. Options of a load make it one row of yours.\n"
    "\n"
    "  --op OP            encaps (a TLS server's; the default), client (key generation,\n"
    "                     then decapsulation: two requests) or mix (in turn)\n"
    "  --connections N    (1)    --in-flight N  requests of each (1 to 64)\n"
    "  --items N          items of a request, 1 to 64 (1)\n"
    "  --rate N           requests a second in all, whether answers come or not; times\n"
    "                     run from when a request was due\n"
    "  --idle-us N        a pause after each answer\n"
    "  --spin-us N        looks for an answer so long before it sleeps (100)\n"
    "  --duration-ms N    of each row, over all rounds (5000)\n"
    "  --rounds N         (5); figures are their medians\n"
    "  --peer PROGRAM     another library's, of tests/bench/peers, in the same rounds\n"
    "  --compare-local    1 to 64 in flight, beside the same kernels in this process\n"
    "  --plot FILE        the two as SVG (with --compare-local)\n"
    "  --control-socket PATH  for batches and the daemon's processor time\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl bench --connections 8 --in-flight 4 --duration-ms 2000\n"
    "  $ sudo mlkemctl bench --peer ~/.cache/mlkemd/peers/peer-openssl\n";

static const char help_demo[] =
    "mlkemctl demo [ALGORITHM]: two parties agree on a secret, before your eyes\n"
    "\n"
    "An initiator and a responder, each on a connection of its own: key generation,\n"
    "encapsulation, decapsulation, the two fingerprints; then what one flipped bit does;\n"
    "then many exchanges at once, and what one costs beside X25519 alone in OpenSSL,\n"
    "measured in the same run.\n"
    "\n"
    "  --exchanges N    how many (1000)\n"
    "  --in-flight N    how many at once, 1 to 64 (64)\n"
    "  --control-socket PATH  for the daemon's counters and its CPU time\n"
    "  --socket PATH, --timeout-ms N, --json\n"
    "\n"
    "  $ sudo mlkemctl demo\n";

static const char help_tls[] =
    "mlkemctl tls HOST:PORT: what a TLS server does with a post-quantum ClientHello\n"
    "\n"
    "Connects, offers X25519MLKEM768 first, and reads off the wire which group the\n"
    "server took, whether it asked again (HelloRetryRequest), how many bytes, segments\n"
    "and round trips its flight took; then connects again with the ClientHello in two\n"
    "segments, which some servers and middleboxes drop. No daemon and no OpenSSL 3.5 is\n"
    "needed. Nothing is decrypted and no handshake is finished: the server may log that.\n"
    "\n"
    "  --groups LIST      in this order (X25519MLKEM768:X25519:P-256:P-384); the first\n"
    "                     and X25519 are sent with a share\n"
    "  --servername NAME  for SNI, if not HOST; empty: none\n"
    "  --split N          so many bytes in the first segment (600); 0: no second try\n"
    "  --require          exit status 5 unless the group is a post-quantum one\n"
    "  --timeout-ms N     of each connection (10000); --json\n"
    "\n"
    "  $ mlkemctl tls example.org:443\n"
    "  $ mlkemctl tls --require 127.0.0.1:443 --servername www.example.org\n"
    "  $ mlkemctl tls --json example.org:443 | jq -r .group\n"
    "\n"
    "Exit status: 3 nothing listens there, 5 the server refused with an alert, 6 no\n"
    "answer in time, 1 what answers is no TLS.\n";

static const char help_openssl_conf[] =
    "mlkemctl openssl-conf: this machine's openssl.cnf, with the provider\n"
    "\n"
    "Includes the machine's own file and adds to its sections: the providers, engines\n"
    "and policies that stand there stay, the default provider stays active. A program\n"
    "gets it by the environment variable OPENSSL_CONF; nothing else changes.\n"
    "\n"
    "  --out FILE       mode 0644 (standard output)\n"
    "  --in FILE        the machine's own file, if not where OpenSSL looks\n"
    "  --groups LIST    for programs that name none themselves\n"
    "                   (X25519MLKEM768:X25519:secp256r1:secp384r1); empty: leave that\n"
    "  --socket PATH    of mlkemd (/run/mlkemd/mlkemd.sock)\n"
    "  --set KEY=VALUE  of the provider: route, require, deadline, leases, server-uid,\n"
    "                   takeover, module; may be repeated\n"
    "  --json           with --out: what was written\n"
    "\n"
    "  # mlkemctl openssl-conf --out /etc/mlkemd/openssl.cnf\n"
    "  $ OPENSSL_CONF=/etc/mlkemd/openssl.cnf openssl list -providers\n";

const char *
ctl_help(const char *command)
{
	static const struct {
		const char *command, *text;
	} pages[] = {
	    {"ping", help_ping},
	    {"info", help_info},
	    {"keygen", help_keygen},
	    {"encaps", help_encaps},
	    {"decaps", help_decaps},
	    {"selftest", help_selftest},
	    {"stats", help_stats},
	    {"reload", help_reload},
	    {"drain", help_drain},
	    {"resume", help_drain},
	    {"bench", help_bench},
	    {"top", help_top},
	    {"doctor", help_doctor},
	    {"demo", help_demo},
	    {"tls", help_tls},
	    {"openssl-conf", help_openssl_conf},
	};

	if (!command)
		return help_all;
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (strcmp(pages[i].command, command) == 0)
			return pages[i].text;
	}
	return NULL;
}
