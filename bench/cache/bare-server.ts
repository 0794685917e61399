// Node's own HTTP/2 server over TLS that sends the same bytes to each request, from one buffer: what a list cannot cost less than.
// Usage: node bare-server.ts PORT CERTIFICATE KEY BODY (files)

import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import process from 'node:process'

const [port, cert = '', key = '', body = ''] = process.argv.slice(2)
const bytes = readFileSync(body)
const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key), allowHTTP1: true })
server.on('request', (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
})
server.listen(Number(port), '127.0.0.1')
