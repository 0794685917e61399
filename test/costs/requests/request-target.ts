// The request line's target, and what is read of its query before anything else is known.

import { selectableFields } from '../../../src/cache/core/fields/selectable-fields.ts'
import { negotiateRead } from '../../../src/cache/core/requests/accept.ts'
import { readRequestOf } from '../../../src/cache/core/requests/read-request.ts'
import { takesGzip } from '../../../src/cache/io/gzip-source.ts'
import { selectionOf } from '../../../src/cache/request/selection.ts'
import type { CachedCollection } from '../../../src/cache/state/cached-collection.ts'
import { readListQuery } from '../../../src/gateway/core/request/list-options.ts'
import {
  MAX_TARGET_LENGTH,
  parseRequestInfo,
  type RequestInfo,
} from '../../../src/gateway/core/request/request-info.ts'
import { readSessionRequest } from '../../../src/gateway/core/request/session-request.ts'
import { type Parser, parser } from '../parser.ts'
import { halves, KIB, MIB, repeat } from '../shapes.ts'

const PARAMETERS = [
  'limit=1',
  '&',
  '=',
  ';',
  '%',
  '%61',
  '+',
  '?',
  '/',
  '//',
  '..',
  'watch=true',
  'fieldSelector=',
  'a',
]
const PODS = podsInfo()
const KEPT = {
  fields: selectableFields({ group: '', version: 'v1', resource: 'pods', namespaced: true }),
} as CachedCollection
const NAMED = '/api/v1/pods?fieldSelector=metadata.name%3Da&'

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'query of a session',
    limit: MAX_TARGET_LENGTH,
    read: (target) => readSessionRequest('exec', target),
    tokens: [...PARAMETERS, 'command=', 'container=', 'tty='],
    shapes: {
      'arguments without end': repeat('command=a&', '/api/v1/namespaces/a/pods/b/exec?'),
      'empty arguments': repeat('command=&', '/api/v1/namespaces/a/pods/b/exec?'),
      'a long argument': repeat('a', '/api/v1/namespaces/a/pods/b/exec?command='),
      streams: repeat('tty=0&', '/api/v1/namespaces/a/pods/b/exec?'),
    },
  }),
  parser({
    name: 'request target',
    limit: MAX_TARGET_LENGTH,
    read: (target) => parseRequestInfo('GET', target),
    tokens: [...PARAMETERS, '/api/v1/', '/apis/apps/v1/', 'namespaces/', 'pods', 'watch/', 'proxy/'],
    shapes: {
      slashes: repeat('/', '/api/v1/'),
      'percent signs in the path': repeat('%61', '/api/v1/'),
      'percent signs that encode nothing': repeat('%', '/api/v1/'),
      'bytes that are no UTF-8': repeat('%ff', '/api/v1/'),
      'dots in the path': repeat('../', '/api/v1/'),
      'subresources without end': repeat('a/', '/api/v1/namespaces/a/pods/'),
      'namespaces without end': repeat('namespaces/', '/api/v1/'),
      'watches without end': repeat('watch/', '/api/v1/'),
      'proxies without end': repeat('proxy/', '/api/v1/'),
      'a long name': repeat('a', '/api/v1/namespaces/a/pods/'),
      'parameters without values, then a long one': halves('a&', 'x', '/api/v1/pods?'),
      'ampersands, then a long one': halves('&', 'x', '/api/v1/pods?'),
      'equals signs': repeat('=', '/api/v1/pods?'),
      semicolons: repeat(';&', '/api/v1/pods?'),
      'encoded keys': repeat('%61=b&', '/api/v1/pods?'),
      'encoded keys that are almost known': repeat('%6cimi=1&', '/api/v1/pods?'),
      'question marks': repeat('?', '/api/v1/pods?'),
      'number signs': repeat('#', '/api/v1/pods?a=b#'),
      'a limit of many digits': repeat('1', `${NAMED}limit=`),
      'a limit of many zeros': repeat('0', `${NAMED}limit=`),
      'many limits': repeat('limit=9&', NAMED),
      'a timeout of many digits': repeat('9', `${NAMED}timeoutSeconds=-`),
    },
  }),
  // Further than a target may be: what searches to the end for each pair is not slow enough below it.
  parser({
    name: 'query',
    limit: MIB,
    read: readListQuery,
    tokens: PARAMETERS,
    shapes: {
      'parameters without values, then a long one': halves('a&', 'x'),
      'ampersands, then a long one': halves('&', 'x'),
      'equals signs, then a long one': halves('=', 'x'),
      'a value that is encoded': repeat('%2c', 'fieldSelector='),
      'a value of plus signs': repeat('+', 'fieldSelector='),
    },
  }),
  parser({
    name: 'read for the cache',
    limit: MAX_TARGET_LENGTH,
    read: (query) => readRequestOf(PODS, 'GET', `/api/v1/pods?${query}`),
    tokens: [
      ...PARAMETERS,
      'resourceVersion=',
      'resourceVersionMatch=NotOlderThan',
      'labelSelector=',
      'allowWatchBookmarks=1',
    ],
    shapes: {
      'parameters without values': repeat('a&'),
      ampersands: repeat('&'),
      'equals signs': repeat('='),
      'a selector that is encoded': repeat('%2c', 'labelSelector='),
      'a version of many digits': repeat('1', 'resourceVersion='),
      'a limit of many digits': repeat('1', 'limit='),
    },
  }),
  parser({
    name: 'selectors of a read for the cache',
    limit: MAX_TARGET_LENGTH,
    read: (text) => [
      selectionOf({ labelSelector: text, fieldSelector: '' }, '', KEPT),
      selectionOf({ labelSelector: '', fieldSelector: text }, '', KEPT),
    ],
    tokens: ['a', '!', ',', '=', 'in (', ')', 'metadata.name=a', '\\', '>1'],
    shapes: {
      'labels that are not there': repeat('!a,'),
      'labels of a value': repeat('a=b,'),
      values: repeat('b,', 'a in ('),
      fields: repeat('metadata.name!=a,'),
      commas: repeat(','),
    },
  }),
  parser({
    name: 'read for the cache, its media types',
    limit: 64 * KIB,
    read: (accept) => [negotiateRead('list', { accept, userAgent: '' }, true), takesGzip(accept)],
    tokens: [
      'application/json',
      'application/vnd.kubernetes.protobuf',
      ',',
      ';',
      'q=',
      'as=Table',
      '*/*',
      '=',
      '"',
      '*',
    ],
    shapes: {
      commas: repeat(','),
      semicolons: repeat(';', 'application/json'),
      types: repeat('application/json,'),
      spaces: repeat(' ', 'application/json;'),
      'a long one': repeat('a', 'application/'),
    },
  }),
]

function podsInfo(): RequestInfo {
  const info = parseRequestInfo('GET', '/api/v1/pods')
  if ('failure' in info) throw new Error(info.failure)
  return info
}
