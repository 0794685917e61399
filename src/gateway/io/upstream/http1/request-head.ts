// Writes heads of requests to endpoints over HTTP/1.1 (RFC 9112 section 3).

import type { Output } from '../../../../http2/output.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import { TOKEN_OCTETS, VALUE_OCTETS } from '../../http1/lines.ts'
import { FIELD_OVERHEAD } from '../../http1/message-reader.ts'
import { writeFields } from '../../http1/write-fields.ts'

/** A request's head, without pseudo-header fields and what is about the connection, or where the body ends. */
export interface RequestFields {
  method: string
  path: string
  authority: string
  /** What the client says; undefined = nothing. */
  contentLength: string | undefined
  expectsContinue: boolean
  readonly list: HeaderList
  /** Size of the whole list, by the count of HTTP/2 (header-list.ts). */
  listBytes: number
}

const SLASH = 0x2f
const SPACE = 0x20
const DELETE = 0x7f
const KEEP_ALIVE = 'connection: keep-alive\r\n\r\n'
const CLOSE = 'connection: close\r\n\r\n'

/** @param shared fields after those of `head` */
export function requestFields(head: HeaderList, shared: HeaderList): RequestFields {
  const fields: RequestFields = {
    method: 'GET',
    path: '/',
    authority: '',
    contentLength: undefined,
    expectsContinue: false,
    list: [],
    listBytes: 0,
  }
  addFields(fields, head)
  addFields(fields, shared)
  return fields
}

function addFields(fields: RequestFields, from: HeaderList): void {
  const { list } = fields
  let bytes = FIELD_OVERHEAD * (from.length >>> 1)
  for (let i = 0; i + 1 < from.length; i += 2) {
    const name = from[i] as string
    const value = from[i + 1] as string
    bytes += name.length + value.length
    switch (name) {
      case ':method':
        fields.method = value
        break
      case ':path':
        fields.path = value
        break
      case ':authority':
        fields.authority = value
        break
      case 'content-length':
        fields.contentLength = value
        break
      case 'expect':
        fields.expectsContinue = true
        break
      case ':scheme':
      case 'te':
      case 'upgrade':
      case 'host':
        break
      default:
        list.push(name, value)
    }
  }
  fields.listBytes += bytes
}

/** Whether HTTP/1.1 can carry its first two lines. */
export function isSendable({ method, path, authority }: RequestFields): boolean {
  return isToken(method) && method !== 'CONNECT' && isPath(path) && isValue(authority)
}

/** Requires `isSendable`. False: nothing was written, because HTTP/1.1 cannot carry it. @param framing the field that tells where the body ends, with its line end; '' = none */
export function writeRequestHead(output: Output, fields: RequestFields, framing: string): boolean {
  const { method, path, authority } = fields
  const first = `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\n`
  // Some servers send a body behind an answer to HEAD: it must not be taken for the next answer.
  const last = framing + (method === 'HEAD' ? CLOSE : KEEP_ALIVE)
  return writeFields(output, first, fields.list, 0, last)
}

function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const octet = text.charCodeAt(i)
    if (octet > 0xff || TOKEN_OCTETS[octet] === 0) return false
  }
  return text !== ''
}

function isPath(path: string): boolean {
  for (let i = 0; i < path.length; i++) {
    const octet = path.charCodeAt(i)
    if (octet <= SPACE || octet === DELETE || octet > 0xff) return false
  }
  return path.charCodeAt(0) === SLASH
}

function isValue(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const octet = text.charCodeAt(i)
    if (octet > 0xff || VALUE_OCTETS[octet] === 0) return false
  }
  return true
}
