// Stands in for DNS: a CONNECT proxy that leads every host name to this machine, so that clients can reach a gateway
// by the host names of its clusters (`proxy-url` in a kubeconfig).

import { createServer } from 'node:http'
import { connect } from 'node:net'

let started: Promise<string> | undefined

/** `http://127.0.0.1:PORT`; one for the whole process, which it does not keep alive. */
export function nameProxyUrl(): Promise<string> {
  started ??= start()
  return started
}

function start(): Promise<string> {
  const server = createServer()
  server.on('connect', (request, client, head) => {
    const port = Number((request.url ?? '').replace(/^.*:/, ''))
    const target = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true }, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.write(head)
      target.pipe(client)
      client.pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('error', () => target.destroy())
    client.on('close', () => target.destroy())
    target.on('close', () => client.destroy())
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.on('connection', (socket) => socket.setNoDelay(true))
    server.listen(0, '127.0.0.1', () => {
      server.unref()
      const address = server.address()
      resolve(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`)
    })
  })
}
