// Protobuf bodies on both ports: what is in runtime.Unknown.

import { decodeProtobuf } from '../../../src/apiserver/protobuf/objects.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { MIB, nested, repeat, type Shape } from '../shapes.ts'

/** Fields of a message, a character for each byte. */
export const PROTOBUF_SHAPES: Readonly<Record<string, Shape>> = {
  'empty preconditions': repeat('\x12\x00'),
  'dry runs': repeat('\x2a\x00'),
  'unknown numbers': repeat('\x78\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01'),
  'numbers that do not end': repeat('\x80', '\x78'),
  annotations: repeat('\x0a\x04\x62\x02\x0a\x00'),
  'empty metadata': repeat('\x0a\x00'),
  'no message': repeat('\xff'),
  groups: nested('\x0b', '\x0c'),
  'groups that are not closed': repeat('\x0b'),
  'unknown fields': repeat('\xfa\x3f\x00'),
  zeros: repeat('\x00'),
}

export const PROTOBUF_TOKENS: readonly string[] = [
  ...Object.values(PROTOBUF_SHAPES).flatMap((shape) =>
    'parts' in shape ? shape.parts.map(({ text }) => text) : ['\x0b', '\x0c'],
  ),
  ...['\x0a', '\x12', '\x1a', '\x22', '\x7f', '\x01', '\xff\xff\xff\xff\x0f'],
]

/** Such a message in runtime.Unknown: its length in three bytes. */
export function sealed(text: string): Buffer {
  const raw = bytes(text)
  const size = [(raw.length & 0x7f) | 0x80, ((raw.length >> 7) & 0x7f) | 0x80, (raw.length >> 14) & 0x7f]
  return Buffer.concat([Buffer.from('k8s\0'), Buffer.from([18, ...size]), raw])
}

/** An object of a kind that the embedded API server reads. */
function namespace(text: string): Buffer {
  const type = Buffer.from('\x0a\x0f\x0a\x02v1\x12\x09Namespace', 'latin1')
  const body = sealed(text)
  return Buffer.concat([body.subarray(0, 4), type, body.subarray(4)])
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'Protobuf',
    limit: 2 * MIB - 1,
    prepare: namespace,
    read: decodeProtobuf,
    tokens: PROTOBUF_TOKENS,
    shapes: PROTOBUF_SHAPES,
  }),
  parserOf({
    name: 'runtime.Unknown',
    limit: 3 * MIB,
    prepare: (text) => bytes(`k8s\0${text}`),
    read: decodeProtobuf,
    tokens: PROTOBUF_TOKENS,
    shapes: PROTOBUF_SHAPES,
  }),
]
