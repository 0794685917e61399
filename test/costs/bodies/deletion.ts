// Bodies and queries of deletions and evictions, which protection reads.

import { readDeletionRequest, readEvictionRequest } from '../../../src/gateway/core/request/deletion-request.ts'
import { MAX_TARGET_LENGTH } from '../../../src/gateway/core/request/request-info.ts'
import { MAX_REMOVAL_BYTES } from '../../../src/gateway/request/calls/request-bodies.ts'
import { type Parser, parser, parserOf } from '../parser.ts'
import { halves, repeat } from '../shapes.ts'
import { JSON_SHAPES, JSON_TOKENS } from './json.ts'
import { PROTOBUF_SHAPES, PROTOBUF_TOKENS, sealed } from './protobuf.ts'
import { YAML_SHAPES, YAML_TOKENS } from './yaml.ts'

const FORMATS = [
  { format: 'application/yaml', shapes: YAML_SHAPES, tokens: YAML_TOKENS, encode: (text: string) => Buffer.from(text) },
  { format: 'application/json', shapes: JSON_SHAPES, tokens: JSON_TOKENS, encode: (text: string) => Buffer.from(text) },
  {
    format: 'application/vnd.kubernetes.protobuf',
    shapes: PROTOBUF_SHAPES,
    tokens: PROTOBUF_TOKENS,
    encode: sealed,
  },
]

export const PARSERS: readonly Parser[] = [
  ...FORMATS.flatMap(({ format, shapes, tokens, encode }) => [
    parserOf({
      name: `deletion, ${format}`,
      limit: MAX_REMOVAL_BYTES,
      prepare: encode,
      read: (body) => readDeletionRequest(format, body, ''),
      shapes,
      tokens,
    }),
    parserOf({
      name: `eviction, ${format}`,
      limit: MAX_REMOVAL_BYTES,
      prepare: encode,
      read: (body) => readEvictionRequest(format, body, ''),
      shapes,
      tokens,
    }),
  ]),
  parser({
    name: 'query of a deletion',
    limit: MAX_TARGET_LENGTH,
    read: (query) => readDeletionRequest('', Buffer.alloc(0), query),
    tokens: ['dryRun=All', '&', '=', 'gracePeriodSeconds=', '0', '9', '-', '%41', 'propagationPolicy='],
    shapes: {
      'dry runs, then a long one': halves('dryRun=All&', 'x'),
      'dry runs': repeat('dryRun=All&'),
      'a grace period of many digits': repeat('9', 'gracePeriodSeconds='),
      'a grace period of many zeros': repeat('0', 'gracePeriodSeconds='),
      'equals signs': repeat('='),
    },
  }),
]
