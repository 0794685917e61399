// Discovery and OpenAPI of upstream, as fast as they are answered.

import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head, inTurn, request } from '../wire/http2.ts'

const PATHS = ['/api', '/apis', '/apis/apps/v1', '/openapi/v3', '/version', '/openapi/v2']

export const attack: Attack = {
  reference: 'discovery storm',
  does: 'asks for discovery on 20 connections',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) =>
    attackHttp2(target, signal, { connections: 20 }, (connection) => {
      const asks = PATHS.map((path) => request(head(target, 'GET', path)))
      return closedLoop(connection, 50, inTurn(asks))
    }),
}
