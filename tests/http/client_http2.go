// Go's client of HTTP/2: client_http2 URL TOGETHER PATH[@FIRST-LAST] ...
// Asks for all, so many of them at once; prints for each "PATH[@FIRST-LAST] VERSION SHA-256".
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func ask(client *http.Client, base, job string) string {
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
	defer answer.Body.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, answer.Body); err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("%s %s %x", job, answer.Proto, hash.Sum(nil))
}

func main() {
	together, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	jobs := make(chan string)
	said := make(chan string)
	for n := 0; n < together; n++ {
		go func() {
			for job := range jobs {
				said <- ask(client, os.Args[1], job)
			}
		}()
	}
	go func() {
		for _, job := range os.Args[3:] {
			jobs <- job
		}
		close(jobs)
	}()
	for range os.Args[3:] {
		fmt.Println(<-said)
	}
}
