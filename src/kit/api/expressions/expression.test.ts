import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluate } from './evaluate.ts'
import {
  type Expression,
  type ExpressionSubject,
  isInvalidExpression,
  parseExpression,
  usesField,
} from './expression.ts'
import { newPatternCost } from './patterns.ts'
import { Cost, ExpressionFault } from './values.ts'

function parsed(text: string, subject: ExpressionSubject = 'claims'): Expression {
  const expression = parseExpression(text, subject)
  return isInvalidExpression(expression) ? assert.fail(`${text} ${expression.invalid}`) : expression
}

function invalid(text: string, subject: ExpressionSubject = 'claims', type?: 'bool'): string {
  const expression = parseExpression(text, subject, type)
  return isInvalidExpression(expression) ? expression.invalid : ''
}

/** Its value, or `fault: ...`. */
function resultOf(text: string, claims: unknown = { m: {} }, cost = new Cost()): unknown {
  try {
    return evaluate(parsed(text), claims, cost)
  } catch (error) {
    if (error instanceof ExpressionFault) return `fault: ${error.message}`
    throw error
  }
}

// What kube-apiserver says about the same ones: test/data/jwt-authenticators.json.
const VALUES: readonly (readonly [text: string, value: unknown])[] = [
  ['1 + 2', 3n],
  ['9223372036854775807 + 1', 'fault: integer overflow'],
  ['1 / 0', 'fault: division by zero'],
  ['true || claims.x', true],
  ['claims.x || true', true],
  ['claims.x || false', 'fault: no such key: x'],
  ['claims.x && false', false],
  ['claims.__proto__', ''],
  ['has(claims.constructor)', false],
  ["'constructor' in dyn(claims.m)", false],
  ['string(123456.0)', '123456'],
  ['string(1234567.0)', '1.234567e+06'],
  ['string(0.0001)', '0.0001'],
  ['string(0.00001)', '1e-05'],
  ['string(-0.5)', '-0.5'],
  ['claims.?toString.hasValue()', false],
  ["'ÄB'.lowerAscii()", 'Äb'],
  ["'😀a'.size()", 2n],
  ["'😀a'.substring(1)", 'a'],
  ["'abc'.substring(2, 1)", 'fault: index out of range'],
  ["int(['0x10'][0])", 'fault: cannot be converted to int'],
  ["int(['9223372036854775808'][0])", 'fault: integer overflow'],
  ['int([1e30][0])', 'fault: integer overflow'],
  ['optional.none().value()', 'fault: optional.none() dereference'],
  ['[1, 2].exists_one(x, x > 1)', true],
  ["['a', 'b'].map(x, ['c'].map(y, x + y)[0]).join(',')", 'ac,bc'],
]
for (const [text, value] of VALUES) {
  test(text, () => {
    if (value === '') assert.notEqual(invalid(text), '')
    else assert.deepEqual(resultOf(text), value)
  })
}

test('what is not an expression, or not about its subject', () => {
  const wrong = [
    '',
    '1 +',
    'clams.a',
    'user.username',
    'claims.a.foo()',
    "'a'.startsWith(1)",
    "'a' + 1",
    '"a',
    `a${'('.repeat(100)}`,
  ]
  for (const text of wrong) assert.match(invalid(text), /^is not a valid expression: \S/, text)
  assert.equal(invalid("claims.a == 'b'", 'claims', 'bool'), '')
  for (const text of ['claims.a', "'true'", '1']) assert.equal(invalid(text, 'claims', 'bool'), 'must evaluate to bool')
  assert.equal(invalid("user.groups.all(g, g != '')", 'user', 'bool'), '')
  assert.match(invalid('user.name', 'user'), /name/)
  assert.match(invalid('claims.a', 'user'), /claims/)
})

test('what has no meaning here is refused when it is written', () => {
  const refused = [
    "timestamp('2027-01-01T00:00:00Z').getHours('Europe/Berlin')",
    'timestamp(claims.t).getHours(claims.zone)',
    "cel.bind(x, duration('1s'), x)",
    "claims.a.reverse() == ''",
    "bool('true')",
    'cel.bind(x, claims.a, x)',
    'type(claims.a) == string',
    "'a' in claims",
    "claims.exists(k, k == 'a')",
    'claims',
    'dyn(claims)',
    '[claims]',
    '1u == 1u',
    "b'x' == b'x'",
    'claims.a__dot__b',
    "{1: 'a'}[1] == 'a'",
    "bytes('a').size() == 1",
  ]
  for (const text of refused) assert.notEqual(invalid(text), '', text)
  assert.match(invalid('bytes(claims.a)'), /has the function bytes, which is not supported/)
})

test('claims.email in every place', () => {
  for (const text of [
    'claims.email',
    'claims.?email',
    "has(claims.email) ? '' : 'x'",
    "['a'].map(x, claims.email)",
    "{'a': claims.email}",
  ]) {
    assert.ok(usesField(parsed(text), 'email'), text)
  }
  for (const text of ["claims['email']", 'claims.a.email', "'claims.email'", 'claims.emails']) {
    assert.ok(!usesField(parsed(text), 'email'), text)
  }
})

test('what costs too much has no value, however it is written', () => {
  const l = Array.from({ length: 2_000 }, (_, n) => n)
  const s = 'a'.repeat(10_000)
  const costly = [
    'claims.l.all(x, claims.l.all(y, x + y >= 0.0))',
    'claims.l.exists(x, claims.l.exists(y, x + y < 0.0)) || true',
    "claims.s.split('').map(x, claims.s.split('')).size() > 0",
    "claims.s.replace('', claims.s).size() > 0",
    '[claims.l].map(l, l.map(a, l.map(b, l.map(c, 1)))).size() > 0',
    `claims.l.map(x, ${'claims.s + '.repeat(20)}'').size() > 0`,
    "claims.l.map(x, claims.s.lowerAscii()).join(claims.s) == ''",
    'sets.contains(claims.l, claims.l)',
    'sets.equivalent(claims.l, claims.l)',
    'sets.intersects(claims.l, claims.l.map(x, -1.0 - x))',
    'claims.l.all(x, claims.l.isSorted())',
    'claims.l.all(x, claims.l.max() == 1999.0)',
    'claims.l.all(x, claims.l.sum() > 0.0)',
    'claims.l.all(x, claims.l.lastIndexOf(-1.0) < 0)',
    'claims.l.all(x, [claims.s, claims.s, claims.s].min() == claims.s)',
    "claims.l.all(x, !claims.s.matches('b$'))",
    'claims.l.all(x, !claims.s.matches(claims.s))',
    "claims.l.all(x, string(timestamp('2027-01-02T03:04:05.' + claims.s.replace('a', '1') + 'Z')) != '')",
    "claims.l.all(x, duration(claims.s.replace('a', '0h')) == duration('0s'))",
    "claims.l.all(x, quantity('1e190').compareTo(quantity('1e-9')) == 1)",
    "[quantity('1e190')].all(q, claims.l.all(x, q == q))",
    "claims.l.all(x, isQuantity(claims.s.replace('a', '1')))",
    "claims.l.all(x, cidr('10.0.0.0/8').containsIP('10.0.0.1') && ip('10.0.0.1').isGlobalUnicast())",
    `[0]${'.map(x, [x, x, x, x, x, x, x, x]).map(y, y)'.repeat(3)}.size() > 0 && claims.l.map(x, claims.l == claims.l).size() > 0`,
  ]
  for (const text of costly) assert.equal(resultOf(text, { l, s }), 'fault: the expression costs too much', text)
})

test('what takes the time of many steps costs as much: characters one by one, searches that go back, faults that are caught', () => {
  const claims = {
    few: Array.from({ length: 300 }, (_, n) => n),
    many: Array.from({ length: 3_000 }, (_, n) => n),
    s: 'aA'.repeat(5_000),
    a: 'a'.repeat(10_000),
    b: `${'a'.repeat(500)}b${'a'.repeat(500)}`,
  }
  const costly = [
    'claims.few.map(x, claims.s.size()).size() > 0',
    'claims.few.map(x, claims.s.substring(0, 1)).size() > 0',
    "claims.few.map(x, (claims.s + 'x').indexOf('x')).size() > 0",
    'claims.few.map(x, claims.s.lowerAscii()).size() > 0',
    'claims.few.map(x, claims.s.upperAscii()).size() > 0',
    'claims.few.map(x, claims.a.contains(claims.b)).size() > 0',
    'claims.few.map(x, claims.a.indexOf(claims.b)).size() > 0',
    'claims.few.map(x, claims.a.split(claims.b)).size() > 0',
    "claims.few.map(x, claims.a.replace(claims.b, '')).size() > 0",
    "claims.many.exists(x, x.startsWith('a'))",
    "claims.many.all(x, x.startsWith('a'))",
  ]
  for (const text of costly) assert.equal(resultOf(text, claims), 'fault: the expression costs too much', text)
  // What users have stays far from it.
  const groups = Array.from({ length: 1_000 }, (_, n) => `department-${n}-of-example`)
  const usual = "dyn(claims.groups).exists(g, g.lowerAscii().contains('admins') || g.split('-').size() > 9)"
  assert.equal(resultOf(usual, { groups }), false)
  const mixed = "dyn(claims.groups).exists(g, g.startsWith('x'))"
  assert.match(String(resultOf(mixed, { groups: claims.many.slice(0, 1_000) })), /no such overload/)
})

test('values of any depth', () => {
  let deep: unknown = 1
  for (let n = 0; n < 8_000; n++) deep = [deep]
  assert.equal(resultOf('claims.d == claims.d', { d: deep }), 'fault: values are too deep to be compared')
  assert.equal(resultOf('claims.d in [claims.d]', { d: deep }), 'fault: values are too deep to be compared')
})

test('the patterns of an object share what compiling them may cost', () => {
  const cost = newPatternCost()
  const results = Array.from({ length: 20 }, (_, n) => {
    const parsed = parseExpression(`claims.a.matches('^[a-z]{1000}${n}$')`, 'claims', 'bool', cost)
    return isInvalidExpression(parsed) ? parsed.invalid : ''
  })
  assert.equal(results[0], '')
  assert.match(results.at(-1) ?? '', /the patterns of the object are too large: shorten them/)
  assert.match(invalid(`claims.a.matches('${'[a-z]{1000}'.repeat(20)}')`), /too large/)
})

test('maps that are compared or looked through cost all of their keys, however few are needed; conversions cost more than a step', () => {
  const claims = {
    m: Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`k${n}`, n])),
    empty: Array.from({ length: 4_000 }, () => ({})),
    l: Array.from({ length: 5_000 }, (_, n) => n),
    t: '2027-01-02T03:04:05Z',
    n: '10.0.0.0/8',
  }
  const costly = [
    'claims.empty.exists(x, x == claims.m)',
    'claims.empty.indexOf(claims.m) >= 0',
    'claims.l.all(x, claims.m.exists(k, true))',
    "claims.l.all(x, string(timestamp(claims.t)) != '')",
    "claims.l.all(x, duration('1h2m3s') != duration('1s'))",
    "claims.l.all(x, string(x) != '' && string(x) != '')",
    '[cidr(claims.n)].all(n, claims.l.all(x, n.masked().prefixLength() == 8 && n.masked().ip().family() == 4))',
  ]
  for (const text of costly) assert.equal(resultOf(text, claims), 'fault: the expression costs too much', text)
})

test('a key that a token names is not in the message: it may be secret, long, or without a text', () => {
  let deep: unknown = 1
  for (let n = 0; n < 8_000; n++) deep = [deep]
  const claims = { m: {}, secret: 'hunter2', object: { toString: 1, valueOf: 1 }, deep }
  for (const key of ['secret', 'object', 'deep']) {
    assert.equal(resultOf(`claims[claims.${key}]`, claims), 'fault: no such key', key)
    assert.equal(resultOf(`claims.m[claims.${key}]`, claims), 'fault: no such key', key)
  }
  assert.equal(resultOf("claims['a b']", claims), 'fault: no such key: a b')
})

test('a pattern of a token is not in the message either', () => {
  const fault = resultOf('claims.a.matches(claims.secret)', { a: '', secret: 'hunter2(' })
  assert.equal(fault, 'fault: the pattern is not valid: missing closing )')
})

test('minus zero keeps its sign, as in Go', () => {
  assert.equal(resultOf('string(claims.n)', { n: -0 }), '-0')
})
