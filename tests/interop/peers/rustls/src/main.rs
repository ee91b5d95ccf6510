// SPDX-License-Identifier: Apache-2.0

//! A client and a server of rustls with aws-lc-rs, for the interop tests: they speak just
//! enough of HTTP/1.0 to move data.
//!
//!     tlspeer client PORT CAFILE        GET /data, the answer goes to standard output
//!     tlspeer server PORT CRT KEY DATA  serves the file DATA until it is killed

use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

type Outcome = Result<(), Box<dyn Error>>;

fn client(port: &str, ca: &str) -> Outcome {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost")?;
    let connection = ClientConnection::new(Arc::new(config), name)?;
    let socket = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    let mut stream = rustls::StreamOwned::new(connection, socket);
    stream.write_all(b"GET /data HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // A server that closes without close_notify; what came is judged by the test.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {}
        other => drop(other?),
    }
    io::stdout().write_all(&answer)?;
    Ok(())
}

fn serve(config: Arc<ServerConfig>, socket: TcpStream, data: &[u8]) -> Outcome {
    let connection = ServerConnection::new(config)?;
    let mut reader = BufReader::new(rustls::StreamOwned::new(connection, socket));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let stream = reader.get_mut();
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", data.len())?;
    stream.write_all(data)?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

fn server(port: &str, crt: &str, key: &str, data: &str) -> Outcome {
    let chain = CertificateDer::pem_file_iter(crt)?.collect::<Result<Vec<_>, _>>()?;
    let config = Arc::new(
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?,
    );
    let data = Arc::new(std::fs::read(data)?);
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    loop {
        let (socket, _) = listener.accept()?;
        let (config, data) = (config.clone(), data.clone());
        std::thread::spawn(move || {
            if let Err(error) = serve(config, socket, &data) {
                eprintln!("tlspeer: {error}");
            }
        });
    }
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[1..] {
        ["client", port, ca] => client(port, ca),
        ["server", port, crt, key, data] => server(port, crt, key, data),
        _ => Err("usage: see main.rs".into()),
    }
}
