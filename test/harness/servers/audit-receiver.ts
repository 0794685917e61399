// A receiver of audit events over HTTPS, as the webhook of kube-apiserver has one: it keeps the events that it has answered with 200, and
// answers as a test tells it.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import { serverCertificate } from '../pki.ts'

export interface ReceivedBatch {
  readonly method: string
  readonly path: string
  readonly authorization: string
  readonly contentType: string
  /** Common name of the client certificate; '' = none. */
  readonly client: string
  readonly body: string
}

export interface ReceivedEvent {
  readonly auditID: string
  readonly stage: string
  readonly level: string
  readonly annotations: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

export interface AuditReceiver {
  readonly url: string
  readonly ca: KeyPair
  /** Each that came whole, whatever the answer. */
  readonly batches: ReceivedBatch[]
  /** The events of requests that were answered with 200. */
  readonly events: ReceivedEvent[]
  /** Answers a batch; it returns whether it was taken. Default: 200. */
  answer: (response: ServerResponse, batch: ReceivedBatch) => boolean
  stop(): Promise<void>
}

/** @param clientCA asks for client certificates of it @param port 0 = any */
export async function startAuditReceiver(
  clientCA?: KeyPair,
  ca: KeyPair = createCA({ commonName: 'receiver' }),
  port = 0,
): Promise<AuditReceiver> {
  const { certPem, keyPem } = serverCertificate(ca, ['localhost'], ['127.0.0.1'])
  const batches: ReceivedBatch[] = []
  const events: ReceivedEvent[] = []
  const receiver: Pick<AuditReceiver, 'answer'> = {
    answer: (response) => {
      response.writeHead(200).end()
      return true
    },
  }
  const client = clientCA && { requestCert: true, rejectUnauthorized: true, ca: clientCA.certPem }
  const server = createServer({ cert: certPem, key: keyPem, ...client })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const batch = batchOf(request, Buffer.concat(chunks).toString('utf8'))
      batches.push(batch)
      if (receiver.answer(response, batch)) events.push(...JSON.parse(batch.body).items)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return Object.assign(receiver, {
    url: `https://127.0.0.1:${address.port}`,
    ca,
    batches,
    events,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

function batchOf(request: IncomingMessage, body: string): ReceivedBatch {
  const { method = '', url: path = '', headers } = request
  const subject = (request.socket as TLSSocket).getPeerCertificate?.()?.subject
  return {
    method,
    path,
    authorization: headers.authorization ?? '',
    contentType: headers['content-type'] ?? '',
    client: String(subject?.CN ?? ''),
    body,
  }
}
