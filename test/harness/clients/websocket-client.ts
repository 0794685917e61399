// A WebSocket of which a test sees each frame, and sends any.

import { createHash, randomBytes } from 'node:crypto'
import { waitFor } from '../wait.ts'
import { type Http1Response, http1Connect, requestHead } from './http1-client.ts'
import type { RawConnection, RawOptions } from './raw-clients.ts'

export interface Frame {
  readonly isFinal: boolean
  readonly opcode: number
  readonly payload: Buffer
}

export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
export const PING = 9
export const PONG = 10

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const MASK = [0x12, 0x34, 0x56, 0x78]

/** As a client has to send it, unless told otherwise. @param announced length that is said. Default: its own */
export function clientFrame(
  opcode: number,
  payload: Buffer | string = '',
  {
    isFinal = true,
    isMasked = true,
    reserved = 0,
    announced,
  }: { isFinal?: boolean; isMasked?: boolean; reserved?: number; announced?: number } = {},
): Buffer {
  const body = Buffer.from(payload)
  const bytes = announced ?? body.length
  const masked = isMasked ? 0x80 : 0
  const long = Buffer.alloc(8)
  long.writeBigUInt64BE(BigInt(bytes))
  const length =
    bytes < 126 ? [bytes | masked] : bytes < 0x10000 ? [126 | masked, bytes >> 8, bytes & 255] : [127 | masked, ...long]
  const sent = isMasked ? body.map((byte, i) => byte ^ (MASK[i & 3] ?? 0)) : body
  return Buffer.concat([
    Buffer.from([(isFinal ? 0x80 : 0) | reserved | opcode, ...length, ...(isMasked ? MASK : [])]),
    sent,
  ])
}

/** Whole frames of a server; what is not whole is left out. */
export function serverFrames(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at + 2 <= bytes.length; ) {
    const first = bytes[at] ?? 0
    const short = bytes[at + 1] ?? 0
    if ((short & 0x80) !== 0) throw new Error('a server masks nothing')
    if ((first & 0x70) !== 0) throw new Error('a frame with reserved bits')
    const extra = short === 127 ? 8 : short === 126 ? 2 : 0
    if (bytes.length < at + 2 + extra) break
    const length =
      extra === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : extra === 2 ? bytes.readUInt16BE(at + 2) : short
    const start = at + 2 + extra
    if (bytes.length < start + length) break
    frames.push({ isFinal: (first & 0x80) !== 0, opcode: first & 0x0f, payload: bytes.subarray(start, start + length) })
    at = start + length
  }
  return frames
}

export interface WebSocketClient {
  readonly answer: Http1Response
  readonly raw: RawConnection
  send(...frames: readonly Buffer[]): void
  frames(): Frame[]
  /** Text of its messages. */
  messages(): string[]
  /** Status with which the server closed it; undefined = it has not. */
  closed(): number | undefined
  destroy(): void
}

interface Opening extends RawOptions {
  readonly path: string
  readonly host?: string
  readonly name: string
  /** Beside, or in place of, those of a browser; undefined = it is left out. */
  readonly fields?: Readonly<Record<string, string | undefined>>
  /** Sent with the request. */
  readonly behind?: Buffer
}

/** Resolves with any answer. @throws if it accepts what it was not asked */
export async function openWebSocket({
  path,
  name,
  fields = {},
  behind,
  ...options
}: Opening): Promise<WebSocketClient> {
  const key = randomBytes(16).toString('base64')
  const asked: Readonly<Record<string, string | undefined>> = {
    Host: name,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    Origin: `https://${name}`,
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
    ...fields,
  }
  const lines = Object.entries(asked).flatMap(([field, value]) => (value === undefined ? [] : [`${field}: ${value}`]))
  const client = await http1Connect(options)
  const head = Buffer.from(requestHead(`GET ${path}`, lines), 'latin1')
  client.send(behind === undefined ? head : Buffer.concat([head, behind]))
  const answer = await client.response()
  const { raw } = client
  if (answer.status === 101) {
    const proof = createHash('sha1').update(`${asked['Sec-WebSocket-Key']}${GUID}`).digest('base64')
    if (answer.values('sec-websocket-accept').join() !== proof) throw new Error('the key was not read')
  }
  const frames = (): Frame[] => {
    const bytes = raw.received()
    return answer.status === 101 ? serverFrames(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)) : []
  }
  return {
    answer,
    raw,
    send: (...sent) => raw.send(Buffer.concat(sent)),
    frames,
    messages: () => frames().flatMap(({ opcode, payload }) => (opcode === TEXT ? [payload.toString()] : [])),
    closed: () =>
      frames()
        .find(({ opcode }) => opcode === CLOSE)
        ?.payload.readUInt16BE(0),
    destroy: () => client.destroy(),
  }
}

/** Resolves once that many have come. */
export async function messagesOf(client: WebSocketClient, count: number): Promise<readonly string[]> {
  return await waitFor(`${count} messages`, () => {
    const messages = client.messages()
    return messages.length >= count && messages
  })
}
