// Answers to malformed requests, behind which the connection ends.

import { STATUS_CODES } from 'node:http'
import { type Refusal, refusalResponse } from '../../../../kit/core/refusal/refusal.ts'

/** @param status code and reason */
export function bareAnswer(status: string): string {
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
}

export function refusalAnswer(refusal: Refusal): string {
  const { headers, body } = refusalResponse(refusal, { isEvents: false })
  const lines: string[] = []
  for (let i = 2; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}\r\n`)
  const status = Number(headers[1])
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\n${lines.join('')}\r\n${body.toString('latin1')}`
}
