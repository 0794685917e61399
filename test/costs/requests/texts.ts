// Texts of clients on their way to logs, taps, headers and messages, and the small languages of queries.

import { createRecord } from '../../../src/gateway/api/request-record.ts'
import { parseExplainLine } from '../../../src/gateway/core/explain/explain-request.ts'
import { selectorShape } from '../../../src/gateway/core/list-cost/selector-shape.ts'
import { clientClassOf } from '../../../src/gateway/core/policy/client-class.ts'
import { parseLogEntry } from '../../../src/gateway/core/replay/log-entry.ts'
import { parseTraceparent, traceStateOf } from '../../../src/gateway/core/request/trace-context.ts'
import { formatAccessLine } from '../../../src/gateway/io/logs/access-log.ts'
import { readSessionQuery } from '../../../src/insight/core/sessions/session-report.ts'
import { shownQuery, tapLine } from '../../../src/insight/core/tap/tap-event.ts'
import { readTapQuery } from '../../../src/insight/core/tap/tap-query.ts'
import { readTopQuery } from '../../../src/insight/core/top/query.ts'
import { canonicalIp } from '../../../src/kit/api/validation/ip-address.ts'
import { nearestName } from '../../../src/kit/api/validation/nearest-name.ts'
import { warningValues } from '../../../src/kit/core/refusal/warning.ts'
import { parseDuration } from '../../../src/kit/core/text/duration.ts'
import { printable, safeJson } from '../../../src/kit/core/text/printable.ts'
import { redactText } from '../../../src/kit/core/text/redact.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, MIB, repeat, type Shape } from '../shapes.ts'

const LINES: Readonly<Record<string, Shape>> = {
  ...JSON_SHAPES,
  shadows: repeat('"a/{n}",', '{"time":"2026-01-01T00:00:00Z","method":"GET","target":"/","shadow":[', '"b/c"]}'),
  groups: repeat('"a{n}",', '{"time":"2026-01-01T00:00:00Z","method":"GET","target":"/","groups":[', '"b"]}'),
  'a time of digits': repeat('1', '{"method":"GET","target":"/","time":"2026-01-01T00:00:00.', 'Z"}'),
  'a time of blanks': repeat(' ', '{"method":"GET","target":"/","time":"', '2026-01-01T00:00:00Z"}'),
  'a time in parentheses': repeat('(', '{"method":"GET","target":"/","time":"1', '"}'),
}

const NAMES = Array.from({ length: 1000 }, (_, n) => `candidate-${n}-${'a'.repeat(50)}`.slice(0, 63))

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'text without secrets',
    limit: MIB,
    read: redactText,
    tokens: [
      '-----BEGIN ',
      'PRIVATE KEY-----',
      '-----END ',
      'Bearer ',
      'Basic%20',
      '://',
      '@',
      '?',
      '&',
      'token=',
      'eyJ',
      '.',
      '-',
      ' ',
      'a',
      'A',
    ],
    shapes: {
      'beginnings of keys': repeat('-----BEGIN PRIVATE KEY-----'),
      'beginnings of keys that differ': repeat('-----BEGIN A{n} PRIVATE KEY-----'),
      'beginnings of a long kind': repeat('A ', '-----BEGIN '),
      'words of keys': repeat('PRIVATE KEY', '-----BEGIN '),
      'ends of keys': repeat('-----END A', '-----BEGIN B PRIVATE KEY-----'),
      bearers: repeat('Bearer '),
      'a bearer and blanks': repeat(' ', 'Bearer'),
      'bearers of percent signs': repeat('Bearer%20'),
      schemes: repeat('://'),
      'schemes and passwords': repeat('://a:b'),
      'at signs': repeat('@', '://'),
      'question marks': repeat('?'),
      'long names of parameters': repeat('a', '?'),
      'parameters that are almost secrets': repeat('?token'),
      'JSON Web Tokens': repeat('eyJ'),
      'parts of JSON Web Tokens': repeat('eyJaaaaaaaa.'),
      dots: repeat('.'),
      'hyphens and dots': repeat('-.'),
      hyphens: repeat('-'),
      words: repeat('a '),
      'long words': repeat('a'),
    },
  }),
  parser({
    name: 'text for terminals',
    limit: MIB,
    read: (text) => printable(text) + safeJson(text),
    shapes: {
      letters: repeat('a'),
      escapes: repeat('\x1b'),
      backslashes: repeat('\\'),
      'bidirectional overrides': repeat('\u202e'),
      'halves of surrogates': repeat('\ud800'),
    },
  }),
  parser({
    name: 'lines of the access log and of taps',
    limit: MIB,
    read: (text) => {
      const record = { ...createRecord(), target: text, userAgent: text, host: text, path: text, name: text }
      return formatAccessLine(record) + tapLine(record, 'ended', { replica: 'a', thread: 0 })
    },
    shapes: {
      letters: repeat('a'),
      quotes: repeat('"'),
      controls: repeat('\x01'),
      questions: repeat('?'),
      parameters: repeat('a=b&', '/?'),
      'halves of surrogates': repeat('\ud800'),
    },
  }),
  parser({
    name: 'query of a tap',
    limit: 64 * KIB,
    read: (text) => readTapQuery(new URLSearchParams(text)),
    tokens: [
      'user=',
      'address=',
      'reason=',
      'code=4xx',
      '&',
      'slow=1s',
      '*',
      '-',
      'for=',
      '10.0.0.0/8',
      'resource=pods',
    ],
    shapes: {
      users: repeat('user=a&'),
      'unknown parameters': repeat('a{n}=b&'),
      addresses: repeat('address=::&'),
      'an address of colons': repeat(':', 'address='),
      reasons: repeat('reason=a*&'),
      'durations of digits': repeat('1', 'slow='),
      durations: repeat('slow=1h&'),
      stars: repeat('*', 'user='),
      switches: repeat('refused=x&'),
    },
  }),
  parser({
    name: 'query that a tap shows',
    limit: MIB,
    read: shownQuery,
    shapes: { parameters: repeat('limit=1&', '/?'), ampersands: repeat('&', '/?'), 'a long one': repeat('a', '/?') },
  }),
  parser({
    name: 'query of top',
    limit: 64 * KIB,
    read: (text) => readTopQuery(new URLSearchParams(text)),
    shapes: {
      digits: repeat('1', 'limit='),
      parameters: repeat('a{n}=b&'),
      'a long dimension': repeat('a', 'by='),
      clusters: repeat('cluster=a{n}&'),
      stars: repeat('*', 'cluster='),
      'a selector': repeat('a{n}=b,', 'selector='),
    },
  }),
  parser({
    name: 'query of users seen',
    limit: 64 * KIB,
    read: (text) => readSessionQuery(new URLSearchParams(text)),
    shapes: {
      digits: repeat('1', 'limit='),
      parameters: repeat('a{n}=b&'),
      'a long user': repeat('a', 'user='),
      clusters: repeat('cluster=a{n}&'),
      'a selector': repeat('a{n}=b,', 'selector='),
    },
  }),
  parser({
    name: 'shape of selectors',
    limit: 64 * KIB,
    read: (text) => selectorShape(text, text),
    tokens: [',', '=', '!=', '\\,', '(', ')', 'a', ' notin ', 'metadata.name'],
    shapes: {
      commas: repeat(','),
      terms: repeat('a{n}=b,'),
      backslashes: repeat('\\'),
      parentheses: repeat('('),
      blanks: repeat(' ', '!'),
      exclusions: repeat('!a,'),
      'almost exclusions': repeat(' noti'),
    },
  }),
  parser({
    name: 'user agent',
    limit: MIB,
    read: (text) => clientClassOf({ name: 'a', uid: '', groups: [], extra: {} }, text),
    shapes: {
      slashes: repeat('/'),
      'a long one': repeat('a', 'kubectl/'),
      'almost known ones': repeat('kube-controller-manage'),
      parentheses: repeat('(', 'kubectl/v1 '),
      blanks: repeat(' ', 'kubelet'),
    },
  }),
  parser({
    name: 'trace context',
    limit: MIB,
    read: (text) => [parseTraceparent(text), traceStateOf(text.split('\n').flatMap((line) => ['tracestate', line]))],
    shapes: {
      zeros: repeat('0', '00-'),
      hyphens: repeat('-', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
      lines: repeat('a\n'),
      members: repeat('a=b,'),
    },
  }),
  parser({
    name: 'warnings',
    limit: MIB,
    read: (text) => warningValues(text.split('\n')),
    shapes: {
      lines: repeat('a{n}\n'),
      'a long one': repeat('a'),
      controls: repeat('\x01'),
      quotes: repeat('"'),
      surrogates: repeat('\ud83d\ude00'),
    },
  }),
  parser({
    name: 'did you mean',
    limit: 64 * KIB,
    read: (name) => nearestName(name, NAMES),
    shapes: { 'a long name': repeat('a'), 'an almost known one': repeat('candidate-') },
  }),
  parser({
    name: 'address',
    limit: 64 * KIB,
    read: canonicalIp,
    tokens: [':', '::', '.', '1', 'ffff', '%', '::ffff:', '0'],
    shapes: {
      colons: repeat(':'),
      dots: repeat('1.'),
      digits: repeat('1'),
      zeros: repeat('0:'),
      zones: repeat('%', '::1'),
    },
  }),
  parser({
    name: 'duration',
    limit: 64 * KIB,
    read: parseDuration,
    shapes: {
      digits: repeat('1'),
      units: repeat('1h'),
      dots: repeat('.'),
      fractions: repeat('1.1s'),
      'no unit': repeat('1.'),
    },
  }),
  parser({
    name: 'line of an access log',
    limit: 4 * MIB,
    fillsMaps: true,
    read: parseLogEntry,
    tokens: JSON_TOKENS,
    shapes: LINES,
  }),
  parser({
    name: 'line of explain',
    limit: MIB,
    fillsMaps: true,
    read: parseExplainLine,
    tokens: JSON_TOKENS,
    shapes: LINES,
  }),
]
