// What upstream answers: a server that is taken over, or a client who writes what it answers with, is not to hold up a thread either.

import {
  readAutoscalerStatus,
  withoutProbeTimes,
  writtenAt,
} from '../../../src/gateway/core/autoscaler-status/status.ts'
import { sliceAddresses } from '../../../src/gateway/core/endpoints/slice-addresses.ts'
import { answerSize } from '../../../src/gateway/core/list-cost/list-sizes.ts'
import { createWatchFrames, followWatch } from '../../../src/gateway/core/request/watch-frames.ts'
import { nodeState } from '../../../src/incidents/controllers/cluster-health/node-watch.ts'
import { isRecord } from '../../../src/kit/api/json/object-shape.ts'
import { OBJECT } from '../../../src/kube/core/answers/answer-limits.ts'
import { AnswerReader } from '../../../src/kube/core/answers/answer-reader.ts'
import { statusErrorOf } from '../../../src/kube/io/client-errors.ts'
import { WatchLines } from '../../../src/kube/io/watch-lines.ts'
import { REMOVE_CELL_ONCE_ANNOTATION } from '../../../src/protection/api/protection.ts'
import { cellsToRemove, statusWithoutCells } from '../../../src/protection/core/ledger/cells.ts'
import { podFacts } from '../../../src/protection/core/quota/pod-facts.ts'
import { readProtector } from '../../../src/protection/core/requests/read-protector.ts'
import { scalePod } from '../../../src/scaling/core/rank/scale-pod.ts'
import { ownCost } from '../../../src/scaling/core/victim-choice/own-cost.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { list, MIB, repeat, type Shape } from '../shapes.ts'

const UNLIMITED = { take: () => true, give: () => undefined }
/** As a read of a socket has it. */
const READ_BYTES = 64 * 1024

function chunksOf(body: Buffer, size = READ_BYTES): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; at += size) chunks.push(body.subarray(at, at + size))
  return chunks
}

const POD = '{"metadata":{"name":"a","uid":"b"'
const PODS: Readonly<Record<string, Shape>> = {
  labels: list('"k{n}":"v"', `${POD},"labels":{`, '}}}'),
  annotations: list('"k{n}":"v"', `${POD},"annotations":{`, '}}}'),
  owners: list('{"uid":"a{n}"}', `${POD},"ownerReferences":[`, ']}}'),
  'managed fields': list('{"subresource":"status","time":"2026-01-01T00:00:00Z"}', `${POD},"managedFields":[`, ']}}'),
  conditions: list('{"type":"Ready","status":"True"}', `${POD}},"status":{"conditions":[`, ']}}'),
  containers: list('{"restartCount":1}', `${POD}},"status":{"containerStatuses":[`, ']}}'),
  'a deletion cost of digits': repeat(
    '1',
    `${POD},"annotations":{"controller.kubernetes.io/pod-deletion-cost":"`,
    '"}}}',
  ),
  'a time of digits': repeat('1', `${POD},"creationTimestamp":"2026-01-01T00:00:00.`, 'Z"}}'),
  taints: list('{"key":"a{n}"}', `${POD}},"spec":{"taints":[`, ']}}'),
}

const CONFIG_MAP = '{"data":{"status":"'
const YAML_STATUS = 'time: x\\nautoscalerStatus: Running\\n'

const LIMITS = { maxConcurrentLag: 0, compactThreshold: 100, aggregationRateMs: 0, staleAfterMs: 0 }
const PROTECTOR =
  '{"metadata":{"name":"a","namespace":"b","uid":"c"},"spec":{"minAvailable":1,"selector":{"matchLabels":{'

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: "answer to a call of the gateway's own",
    limit: 10 * MIB,
    prepare: bytes,
    read: (body) => {
      const reader = new AnswerReader(OBJECT.bytes, UNLIMITED)
      for (const chunk of chunksOf(body)) reader.add(chunk)
      return reader.counted(OBJECT, 1)
    },
    tokens: JSON_TOKENS,
    shapes: {
      ...JSON_SHAPES,
      'a long string': repeat('a', '"', '"'),
      'escaped quotes': repeat('\\"', '"', '"'),
      backslashes: repeat('\\', '"', '"'),
      'short strings': repeat('""'),
      digits: repeat('1'),
    },
  }),
  parserOf({
    name: 'watch that is passed on, JSON',
    limit: MIB,
    prepare: bytes,
    read: (body) => {
      const frames = createWatchFrames('application/json', '')
      for (const chunk of chunksOf(body)) followWatch(frames, chunk)
    },
    shapes: { newlines: repeat('\n'), events: repeat('{}\n'), 'a long event': repeat('a') },
  }),
  parserOf({
    name: 'watch that is passed on, Protobuf',
    limit: MIB,
    prepare: bytes,
    read: (body) => {
      const frames = createWatchFrames('application/vnd.kubernetes.protobuf', '')
      for (const chunk of chunksOf(body, 100)) followWatch(frames, chunk)
    },
    tokens: ['\0\0\0\0', '\0\0\0\x01a', '\0\0\x01\0', '\xff\xff\xff\xff'],
    shapes: {
      'empty events': repeat('\0'),
      events: repeat('\0\0\0\x01a'),
      'a long event': repeat('a', '\xff\xff\xff\xff'),
    },
  }),
  parserOf({
    name: 'watch of the gateway itself',
    limit: 4 * MIB,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => {
      const lines = new WatchLines(UNLIMITED)
      for (const chunk of chunksOf(body)) lines.push(chunk)
    },
    tokens: ['{"type":"ADDED","object":{}}\n', '\n', '{', '}', '"'],
    shapes: {
      newlines: repeat('\n'),
      events: repeat('{"type":"ADDED","object":{}}\n'),
      'a line without end': repeat('a'),
      'a long event': repeat('"k{n}":1,', '{"type":"ADDED","object":{', '"a":1}}\n'),
    },
  }),
  parserOf({
    name: 'watch of the gateway itself, a byte at a time',
    limit: MIB,
    prepare: bytes,
    read: (body) => {
      const lines = new WatchLines(UNLIMITED)
      for (const chunk of chunksOf(body, 1)) lines.push(chunk)
    },
    shapes: { 'a line without end': repeat('a'), events: repeat('{"type":"ADDED","object":{}}\n') },
  }),
  parserOf({
    name: 'size of a list',
    limit: MIB,
    prepare: bytes,
    read: (body) => {
      for (const encoding of ['', 'gzip']) {
        const size = answerSize(encoding, 'application/json', true)
        for (const chunk of chunksOf(body, 100)) size.see(chunk)
        size.bytes(true)
        size.remainingItems()
      }
    },
    shapes: {
      digits: repeat('1', '{"metadata":{"remainingItemCount":'),
      counts: repeat('"remainingItemCount":'),
      items: repeat('"items":'),
    },
  }),
  parser({
    name: 'refusal of an API server',
    limit: 3 * MIB,
    fillsMaps: true,
    read: (body) => statusErrorOf(500, body, '1'),
    tokens: JSON_TOKENS,
    shapes: {
      ...JSON_SHAPES,
      causes: list('{"message":"a"}', '{"kind":"Status","details":{"causes":[', ']}}'),
      'a long message': repeat('a', '{"kind":"Status","message":"', '"}'),
    },
  }),
  parser({
    name: 'pod',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const pod: unknown = JSON.parse(text)
      if (!isRecord(pod)) return undefined
      return [podFacts(pod), scalePod(pod), nodeState(pod), ownCost(pod)]
    },
    tokens: JSON_TOKENS,
    shapes: PODS,
  }),
  parser({
    name: 'PodProtector',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const object: unknown = JSON.parse(text)
      // As a list or watch has them.
      if (!isRecord(object)) return undefined
      const { protector } = readProtector(object, undefined)
      return readProtector(object, protector)
    },
    tokens: JSON_TOKENS,
    shapes: {
      labels: list('"k{n}":"v"', PROTECTOR, '}}}}'),
      expressions: list('{"key":"k{n}","operator":"Exists"}', `${PROTECTOR}},"matchExpressions":[`, ']}}}'),
      cells: list('{"cellID":"a{n}"}', `${PROTECTOR}}}},"status":{"cells":[`, ']}}'),
      'cells of the same name': list('{"cellID":"a"}', `${PROTECTOR}}}},"status":{"cells":[`, ']}}'),
      buckets: list(
        '{"startTime":"2026-01-01T00:00:00.{n}Z","podUid":"u{n}"}',
        `${PROTECTOR}}}},"status":{"cells":[{"cellID":"a","admissionHistory":{"buckets":[`,
        ']}}]}}',
      ),
    },
  }),
  parser({
    name: 'cells that are removed',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const object: unknown = JSON.parse(text)
      // As a list or watch has them.
      if (!isRecord(object)) return undefined
      const { protector } = readProtector(object, undefined)
      return statusWithoutCells(protector, cellsToRemove(object) ?? [], LIMITS, 0)
    },
    tokens: JSON_TOKENS,
    shapes: {
      'names beside as many cells': (length) => {
        const count = Math.floor(length / 24)
        const names = Array.from({ length: count }, (_, n) => `b${n}`).join(',')
        const cells = Array.from({ length: count }, (_, n) => ({ cellID: `a${n}` }))
        const metadata = { name: 'a', namespace: 'b', uid: 'c', annotations: { [REMOVE_CELL_ONCE_ANNOTATION]: names } }
        return JSON.stringify({ metadata, spec: { minAvailable: 1, selector: {} }, status: { cells } })
      },
      commas: repeat(
        ',',
        `{"metadata":{"name":"a","annotations":{"${REMOVE_CELL_ONCE_ANNOTATION}":"`,
        '"}},"spec":{}}',
      ),
    },
  }),
  parser({
    name: 'EndpointSlice',
    limit: MIB,
    fillsMaps: true,
    read: (text) => sliceAddresses([JSON.parse(text)]),
    tokens: JSON_TOKENS,
    shapes: {
      addresses: list(
        '"10.0.0.1"',
        '{"addressType":"IPv4","ports":[{"name":"https","port":1}],"endpoints":[{"addresses":[',
        ']}]}',
      ),
      'addresses that are refused': list(
        '"a{n}"',
        '{"addressType":"IPv4","ports":[{"name":"https","port":1}],"endpoints":[{"addresses":[',
        ']}]}',
      ),
      'a long address': repeat(
        ':',
        '{"addressType":"IPv6","ports":[{"name":"https","port":1}],"endpoints":[{"addresses":["',
        '"]}]}',
      ),
      endpoints: list(
        '{"addresses":["::{n}"]}',
        '{"addressType":"IPv6","ports":[{"name":"https","port":1}],"endpoints":[',
        ']}',
      ),
      ports: list('{"name":"a{n}"}', '{"addressType":"IPv4","ports":[', '],"endpoints":[]}'),
    },
  }),
  parser({
    name: 'status of a cluster-autoscaler',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const map = JSON.parse(text)
      const { status } = map.data ?? {}
      return [readAutoscalerStatus(map), writtenAt(String(status)), withoutProbeTimes(String(status))]
    },
    tokens: [...JSON_TOKENS, YAML_STATUS, 'nodeGroups:\\n', '- name: a\\n', '  scaleUp: ', 'lastProbeTime: ', '\\n'],
    shapes: {
      'blanks of a line': repeat(' ', CONFIG_MAP + YAML_STATUS, '"}}'),
      'hyphens of a line': repeat('- ', CONFIG_MAP + YAML_STATUS, '"}}'),
      'groups in YAML': repeat(
        '- name: a{n}\\n  health:\\n    status: Healthy\\n',
        `${CONFIG_MAP}time: x\\nnodeGroups:\\n`,
        '"}}',
      ),
      'brackets in YAML': repeat('[', `${CONFIG_MAP}time: x\\nnodeGroups: `, '"}}'),
      'braces in YAML': repeat('}', `${CONFIG_MAP}time: x\\nnodeGroups: `, '"}}'),
      'aliases in YAML': repeat('- *a\\n', `${CONFIG_MAP}time: &a x\\nnodeGroups:\\n`, '"}}'),
      'times of probes': repeat('lastProbeTime: \\n', CONFIG_MAP, '"}}'),
      'empty lines': repeat('\\n', CONFIG_MAP + YAML_STATUS, '"}}'),
    },
  }),
]
