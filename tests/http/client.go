// Go's client: client URL AUTHORITY VERSION PATH[@FIRST-LAST] ...
// Asks for all on one connection, and again on a second one; prints a SHA-256 for each.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func ask(client *http.Client, base, job string) {
	path, part, ranged := strings.Cut(job, "@")
	request, err := http.NewRequest("GET", base+path, nil)
	if err != nil {
		log.Fatal(err)
	}
	if ranged {
		request.Header.Set("Range", "bytes="+part)
	}
	answer, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, answer.Body); err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	fmt.Printf("%x\n", hash.Sum(nil))
}

func main() {
	pem, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	version := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[os.Args[3]]
	conf := &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version,
		ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	for round := 0; round < 2; round++ {
		transport := &http.Transport{TLSClientConfig: conf}
		for _, job := range os.Args[4:] {
			ask(&http.Client{Transport: transport}, os.Args[1], job)
		}
		transport.CloseIdleConnections()
	}
}
