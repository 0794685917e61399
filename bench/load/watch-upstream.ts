// Upstream of the idle-watch measurement: answers probes and reviews, and every other request with a watch that says nothing more.

import { readFileSync } from 'node:fs'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { join } from 'node:path'
import process from 'node:process'

const [dir = '.', port = '0'] = process.argv.slice(2)
const server = createSecureServer({
  cert: readFileSync(join(dir, 'server.pem')),
  key: readFileSync(join(dir, 'server.key')),
  settings: { maxConcurrentStreams: 250 },
})
const review = readFileSync(join(dir, 'www/apis/authentication.k8s.io/v1/tokenreviews'))

server.on('stream', (stream: ServerHttp2Stream, headers) => {
  stream.on('error', () => undefined)
  const path = String(headers[':path'])
  stream.respond({ ':status': 200, 'content-type': 'application/json' })
  if (path.includes('watch')) stream.write('{"type":"BOOKMARK"}\n')
  else stream.end(path.endsWith('/tokenreviews') ? review : 'ok')
})
server.listen(Number(port), '127.0.0.1')
