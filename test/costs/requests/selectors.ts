// Label and field selectors in a query: of every request, and of the embedded API server.

import { parseFieldSelector } from '../../../src/apiserver/list/options.ts'
import { UPSTREAM_CLUSTERS } from '../../../src/gateway/api/upstream-cluster-kind.ts'
import { MAX_SELECTOR_LENGTH } from '../../../src/gateway/core/request/list-options.ts'
import { parseRequestInfo } from '../../../src/gateway/core/request/request-info.ts'
import { parseLabelSelector } from '../../../src/kube/core/selectors/parse-selector.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, repeat } from '../shapes.ts'

const TOKENS = [
  ',',
  '=',
  '==',
  '!=',
  '!',
  ' in ',
  ' notin ',
  '(',
  ')',
  '<',
  '>',
  ' ',
  '\\',
  '\\,',
  '/',
  '.',
  '-',
  'a',
  '1',
]
/** The head of a request to the embedded API server has no more. */
const CONTROL_HEAD = 64 * KIB
const NAMED = 'fieldSelector=metadata.name=a&labelSelector='

const LABELS = {
  keys: repeat('a,', '', 'a'),
  'different keys': repeat('k{n},', '', 'a'),
  'keys that exist not': repeat('!a,', '', '!a'),
  values: repeat('a,', 'a in (', 'a)'),
  'different values': repeat('v{n},', 'a in (', 'a)'),
  'values that are not closed': repeat('a,', 'a in ('),
  'empty values': repeat(',', 'a in (', ')'),
  parentheses: repeat('(', 'a in '),
  'closing parentheses': repeat(')', 'a in (a'),
  commas: repeat(','),
  'equals signs': repeat('='),
  'exclamation marks': repeat('!'),
  blanks: repeat(' ', 'a', '=b'),
  'blanks behind': repeat(' ', 'a in (a)'),
  'an integer': repeat('1', 'a>'),
  'integers of many zeros': repeat('0', 'a<'),
  'a value that is none': repeat('a=b,', '', '-=c'),
  'values of hyphens': repeat('-', 'a='),
  'a long key': repeat('a'),
  'a long prefix': repeat('a', '', '/a'),
  'a prefix of dots': repeat('a.', '', 'a/a'),
  'requirements that differ in order': repeat('k{n} notin (b,a),', '', 'a'),
}

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'field selector of a request',
    limit: MAX_SELECTOR_LENGTH,
    read: (selector) => parseRequestInfo('GET', `/api/v1/pods?fieldSelector=${selector}`),
    tokens: [...TOKENS, 'metadata.name', 'metadata.name=a'],
    shapes: {
      terms: repeat('metadata.name=a,'),
      'terms that are alike': repeat('metadata.name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,'),
      'terms that differ': repeat('metadata.name=a{n},'),
      commas: repeat(',', 'metadata.name=a'),
      'equals signs': repeat('=', 'metadata.name=a'),
      'exclamation marks': repeat('!=', 'metadata.name=a'),
      backslashes: repeat('\\\\', 'metadata.name='),
      'escaped commas': repeat('\\,', 'metadata.name='),
      'encoded commas': repeat('%2c', 'metadata.name%3da'),
      'no term': repeat('a', ''),
    },
  }),
  parser({
    name: 'label selector of a request',
    limit: MAX_SELECTOR_LENGTH,
    read: (selector) => parseRequestInfo('GET', `/api/v1/pods?${NAMED}${selector}`),
    tokens: TOKENS,
    shapes: LABELS,
  }),
  parser({
    name: 'label selector of the embedded API server',
    limit: CONTROL_HEAD,
    read: parseLabelSelector,
    tokens: TOKENS,
    shapes: LABELS,
  }),
  parser({
    name: 'field selector of the embedded API server',
    limit: CONTROL_HEAD,
    read: (text) => parseFieldSelector(text, UPSTREAM_CLUSTERS),
    tokens: [...TOKENS, 'metadata.name', 'metadata.namespace'],
    shapes: {
      terms: repeat('metadata.name=a,'),
      'terms that differ': repeat('metadata.name=a{n},'),
      'fields that do not exist': repeat('a{n}=a,'),
      backslashes: repeat('\\\\', 'metadata.name='),
      commas: repeat(','),
      'equals signs': repeat('='),
    },
  }),
]
