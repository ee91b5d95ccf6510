// SPDX-License-Identifier: Apache-2.0

// A client and a server of Go's crypto/tls with its own default groups, for the
// interop tests: they speak just enough of HTTP/1.0 to move data.
//
//	tlspeer client PORT CAFILE        GET /data, the answer goes to standard output
//	tlspeer server PORT CRT KEY DATA  serves the file DATA until it is killed
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tlspeer:", err)
		os.Exit(1)
	}
}

func client(port, caFile string) {
	pem, err := os.ReadFile(caFile)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port,
		&tls.Config{RootCAs: roots, ServerName: "localhost"})
	check(err)
	_, err = io.WriteString(conn, "GET /data HTTP/1.0\r\nHost: localhost\r\n\r\n")
	check(err)
	_, err = io.Copy(os.Stdout, conn)
	check(err)
}

func serve(conn net.Conn, data []byte) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n", len(data))
	conn.Write(data)
}

func server(port, crt, key, dataFile string) {
	data, err := os.ReadFile(dataFile)
	check(err)
	pair, err := tls.LoadX509KeyPair(crt, key)
	check(err)
	listener, err := tls.Listen("tcp", "127.0.0.1:"+port,
		&tls.Config{Certificates: []tls.Certificate{pair}})
	check(err)
	for {
		conn, err := listener.Accept()
		check(err)
		go serve(conn, data)
	}
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "client":
		client(os.Args[2], os.Args[3])
	case len(os.Args) == 6 && os.Args[1] == "server":
		server(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	default:
		fmt.Fprintln(os.Stderr, "usage: see main.go")
		os.Exit(2)
	}
}
