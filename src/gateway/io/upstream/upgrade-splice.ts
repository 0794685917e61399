// Upgraded connections: the client's socket and a dedicated upstream socket are spliced only after upstream responded with 101. Any other response is
// passed on as an ordinary one, and its connection is never reused (CVE-2018-1002105).

import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { CLIENT_SIDE_LIMITS } from '../../../http2/limits.ts'
import { ANSWER_WATER_BYTES, type Charge, type HeaderList } from '../../../kit/api/stream.ts'
import type { ClientUpgrade } from '../../../kit/api/upgrade.ts'
import { limitInterimHeads } from '../../../kube/io/answers/interim-heads.ts'
import type { SessionEnd } from '../../api/session-record.ts'
import type { SessionTap } from '../../core/request/session-tap.ts'
import { FairPipe } from '../socket/fair-pipe.ts'
import type { UpstreamEndpoint } from './pool.ts'

export interface SpliceEvents {
  /** Upstream responded with 101 and the sockets are spliced. @param head of that answer, names in lower case @returns false = they are not to be spliced, and the owner answers */
  onSwitched(head: HeaderList): boolean
  /** Upstream refused: an ordinary response follows. */
  onResponse(head: HeaderList): void
  onBody(chunk: Buffer): void
  onBodyEnd(): void
  /** Before a response: `sent` tells whether upstream may have seen the request. Never called after 101. */
  onFailed(error: Error, sent: boolean): void
  /** The client stops accepting data for now, or accepts it again. */
  onWaiting(): void
  /** The spliced connection was closed. @param endedBy '' = it was not spliced: a response broke off */
  onClosed(bytesFromClient: number, bytesToClient: number, endedBy: SessionEnd | ''): void
}

export interface Splice {
  /** Its tap is no longer full. */
  goOn(): void
  /** Aborts both connections. */
  abort(): void
}

/** Deadline for passing on a non-101 response (apimachinery/pkg/util/proxy/upgradeaware.go). */
const REFUSAL_BODY_DEADLINE_MS = 10_000

/**
 * @param fields request header fields, without pseudo-headers; includes Connection and Upgrade
 * @param charge the source that is charged for the traffic
 * @param tap sees what passes
 */
export function spliceUpgrade(
  endpoint: UpstreamEndpoint,
  method: string,
  target: string,
  fields: HeaderList,
  client: ClientUpgrade,
  charge: Charge,
  events: SpliceEvents,
  tap: SessionTap | undefined,
): Splice {
  if (!(client.socket instanceof Duplex)) throw new TypeError('not a socket')
  const splice = new Splicing(client.socket, client.first, charge, events, tap)
  endpoint.connectHttp1().then(
    (upstream) => splice.send(upstream, method, target, fields),
    (error: Error) => splice.fail(error, false),
  )
  return splice
}

class Splicing implements Splice {
  readonly #client: Duplex
  readonly #first: Buffer
  readonly #events: SpliceEvents
  readonly #charge: Charge
  readonly #tap: SessionTap | undefined
  #upstream: Socket | undefined
  #state: 'connecting' | 'sent' | 'answered' | 'switched' | 'over' = 'connecting'
  #fromClient: FairPipe | undefined
  #toClient: FairPipe | undefined
  /** Which side was the first to end, of spliced connections. */
  #endedBy: SessionEnd | '' = ''

  constructor(client: Duplex, first: Buffer, charge: Charge, events: SpliceEvents, tap: SessionTap | undefined) {
    this.#client = client
    this.#first = first
    this.#charge = charge
    this.#events = events
    this.#tap = tap
    client.once('close', () => this.#onClientClose())
  }

  send(upstream: Socket, method: string, target: string, fields: HeaderList): void {
    if (this.#state === 'over') {
      upstream.destroy()
      return
    }
    this.#upstream = upstream
    this.#state = 'sent'
    upstream.on('error', () => undefined)
    try {
      const outgoing = request({
        createConnection: () => upstream,
        method,
        path: target,
        headers: withoutBody(method, fields),
        setHost: false,
        maxHeaderSize: CLIENT_SIDE_LIMITS.maxHeaderListBytes,
      })
      limitInterimHeads(outgoing)
      outgoing.on('upgrade', (answer, socket, first) => this.#switch(answer, socket, first))
      outgoing.on('response', (answer) => this.#relay(answer))
      outgoing.on('error', (error) => this.fail(error, true))
      outgoing.end()
    } catch (error) {
      this.fail(error as Error, false)
    }
  }

  fail(error: Error, sent: boolean): void {
    if (this.#state === 'over' || this.#state === 'switched' || this.#state === 'answered') return
    this.#state = 'over'
    this.#upstream?.destroy()
    this.#events.onFailed(error, sent)
  }

  #relay(answer: IncomingMessage): void {
    if (this.#state !== 'sent') return
    this.#state = 'answered'
    const client = this.#client
    const deadline = setTimeout(() => answer.destroy(), REFUSAL_BODY_DEADLINE_MS)
    this.#events.onResponse([':status', String(answer.statusCode ?? 502), ...lowerNames(answer.rawHeaders)])
    answer.on('data', (chunk: Buffer) => {
      this.#events.onBody(chunk)
      if (client.writableLength >= ANSWER_WATER_BYTES) answer.pause()
    })
    const resume = (): void => void answer.resume()
    client.on('drain', resume)
    answer.on('error', () => undefined)
    answer.once('close', () => {
      clearTimeout(deadline)
      client.off('drain', resume)
      this.#upstream?.destroy()
      if (this.#state === 'over') return
      this.#state = 'over'
      if (answer.complete) {
        this.#events.onBodyEnd()
        return
      }
      // Aborted: the client must not take a partial response for a complete one.
      client.destroy()
      this.#events.onClosed(0, 0, '')
    })
  }

  #switch(answer: IncomingMessage, upstream: Duplex, first: Buffer): void {
    if (this.#state !== 'sent') {
      upstream.destroy()
      return
    }
    this.#state = 'switched'
    if (!this.#events.onSwitched([':status', '101', ...lowerNames(answer.rawHeaders)])) {
      this.#state = 'over'
      upstream.destroy()
      return
    }
    const client = this.#client
    client.write(responseHead(answer), 'latin1')
    upstream.on('error', () => {
      this.#endBy('upstream')
      toClient.flush()
      client.destroy()
    })
    client.on('error', () => {
      this.#endBy('client')
      fromClient.flush()
      upstream.destroy()
    })
    upstream.once('end', () => this.#endBy('upstream'))
    client.once('end', () => this.#endBy('client'))
    upstream.once('close', () => {
      this.#endBy('upstream')
      // The last bytes from upstream are still on their way to the client.
      toClient.flush()
      if (!client.destroyed && !client.writableEnded) client.end()
      this.#close()
    })
    const tap = this.#tap
    const [tapClient, tapUpstream] =
      tap === undefined
        ? []
        : [
            { see: (chunk: Buffer) => tap.fromClient(chunk), isFull: () => tap.isFull },
            { see: (chunk: Buffer) => tap.toClient(chunk), isFull: () => tap.isFull },
          ]
    const fromClient = new FairPipe(client, upstream, this.#charge, undefined, tapClient)
    const toClient = new FairPipe(upstream, client, this.#charge, () => this.#events.onWaiting(), tapUpstream)
    this.#fromClient = fromClient
    this.#toClient = toClient
    fromClient.begin(this.#first)
    toClient.begin(first)
  }

  goOn(): void {
    this.#fromClient?.goOn()
    this.#toClient?.goOn()
  }

  /** In any state: notifies the splice's owner, which releases what it holds. */
  #onClientClose(): void {
    this.#endBy('client')
    this.#upstream?.destroy()
    if (this.#state === 'connecting' || this.#state === 'sent') this.fail(new Error('the client went away'), true)
    else this.#close()
  }

  #endBy(side: SessionEnd): void {
    if (this.#state === 'switched' && this.#endedBy === '') this.#endedBy = side
  }

  #close(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#events.onClosed(this.#fromClient?.bytes ?? 0, this.#toClient?.bytes ?? 0, this.#endedBy)
  }

  abort(): void {
    if (this.#state === 'switched') {
      this.#endBy('gateway')
      // Before the caller ends the request, which would then be recorded without its bytes.
      this.#close()
    }
    this.#upstream?.destroy()
    this.#client.destroy()
  }
}

/** node:http would announce a chunked body for a POST without a length, and the final chunk would be the first bytes of the new protocol. */
function withoutBody(method: string, fields: HeaderList): HeaderList {
  return method === 'GET' || fields.includes('content-length') ? fields : [...fields, 'content-length', '0']
}

function responseHead(answer: IncomingMessage): string {
  let head = 'HTTP/1.1 101 Switching Protocols\r\n'
  const raw = answer.rawHeaders
  for (let i = 0; i + 1 < raw.length; i += 2) head += `${raw[i]}: ${raw[i + 1]}\r\n`
  return `${head}\r\n`
}

function lowerNames(raw: readonly string[]): string[] {
  return raw.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
}
