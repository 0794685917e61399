// uploads posts bodies as Go's own client does, each on a connection of its own, and prints a line for each: the status, or the error.
package main

import (
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	address := flag.String("address", "", "host:port of the server")
	host := flag.String("host", "localhost", "SNI and :authority")
	path := flag.String("path", "/", "path of the request")
	cert := flag.String("cert", "", "PEM file of the client's certificate")
	key := flag.String("key", "", "PEM file of its key")
	http2 := flag.Bool("http2", false, "HTTP/2 instead of HTTP/1.1")
	size := flag.Int("bytes", 0, "bytes of the body")
	runs := flag.Int("runs", 1, "number of requests")
	timeout := flag.Duration("timeout", 20*time.Second, "time limit of a request")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	body := make([]byte, *size)
	for range *runs {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!*http2)
		protocols.SetHTTP2(*http2)
		client := http.Client{Timeout: *timeout, Transport: &http.Transport{
			Protocols:       protocols,
			TLSClientConfig: &tls.Config{ServerName: *host, InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}},
		}}
		status, err := post(&client, *address, *host, *path, body)
		client.CloseIdleConnections()
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(status)
		}
	}
}

func post(client *http.Client, address, host, path string, body []byte) (int, error) {
	request, err := http.NewRequest("POST", "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, fmt.Errorf("behind %d: %w", response.StatusCode, err)
	}
	return response.StatusCode, nil
}
