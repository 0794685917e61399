// A DNS server (RFC 1035) on loopback: answers A and AAAA as a test tells it, and counts what it is asked.

import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'

export interface DnsAnswer {
  /** IPv4 and IPv6. */
  readonly addresses?: readonly string[]
  /** Seconds. Default 0. */
  readonly ttl?: number
  /** Response code. Default 0. */
  readonly code?: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED'
  /** Record types that get no answer at all. */
  readonly silent?: readonly ('A' | 'AAAA')[]
}

export interface DnsServer {
  /** `HOST:PORT`. */
  readonly address: string
  /** What every name is. */
  answer: DnsAnswer
  /** Questions so far. */
  readonly questions: number
  stop(): Promise<void>
}

const CODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 }
const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' }
const HEADER_BYTES = 12

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const server = { address: '', answer: {} as DnsAnswer, questions: 0, stop: () => closed }
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  server.stop = () => {
    socket.close()
    return closed
  }
  socket.on('message', (query, from) => {
    server.questions++
    const end = query.indexOf(0, HEADER_BYTES) + 1
    const type = TYPES[query.readUInt16BE(end)]
    if (type === undefined || server.answer.silent?.includes(type) === true) return
    socket.send(responseTo(query.subarray(0, end + 4), type, server.answer), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  server.address = `127.0.0.1:${socket.address().port}`
  return server
}

/** @param question the query up to the end of its question */
function responseTo(question: Buffer, type: 'A' | 'AAAA', { addresses = [], ttl = 0, code }: DnsAnswer): Buffer {
  const own = addresses.filter((address) => isIP(address) === (type === 'A' ? 4 : 6))
  const records = code === undefined ? own.map((address) => recordOf(address, ttl)) : []
  const head = Buffer.from(question)
  // Response, recursion desired and available.
  head.writeUInt16BE(0x8180 | (code === undefined ? 0 : CODES[code]), 2)
  for (const [at, count] of [1, records.length, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * at)
  return Buffer.concat([head, ...records])
}

function recordOf(address: string, ttl: number): Buffer {
  const data = isIP(address) === 4 ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address)
  // The name is that of the question, at byte 12.
  const head = Buffer.from([0xc0, HEADER_BYTES, 0, data.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, data.length])
  head.writeUInt32BE(ttl, 6)
  return Buffer.concat([head, data])
}

function ipv6Bytes(address: string): Buffer {
  const [before = '', after = ''] = address.split('::')
  const words = (text: string): number[] =>
    text.split(':').flatMap((word) => (word === '' ? [] : [Number.parseInt(word, 16)]))
  const [left, right] = [words(before), words(after)]
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right]
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 0xff]))
}
