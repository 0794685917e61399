// The functions that expressions may have, with their types, which the checker knows beside those of the language.

import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { Cidr, Ip } from './addresses.ts'
import { Quantity } from './quantities.ts'
import { zoneMinutes } from './times.ts'
import { typeName } from './values.ts'

/** What an expression is about. */
export type ExpressionSubject = 'claims' | 'user'

/** Maximum nodes and levels of an expression. */
const MAX_PARTS = 1_000
const MAX_DEPTH = 40

/**
 * Types of the arguments, one text for each overload; `any` = the checker compares them, or the evaluation does; `zone` = a literal time zone that is an
 * offset.
 */
type Declarations = Readonly<Record<string, readonly string[]>>

const FUNCTIONS: Declarations = {
  has: ['any'],
  size: ['any'],
  string: ['any'],
  int: ['any'],
  double: ['any'],
  dyn: ['any'],
  timestamp: ['any'],
  duration: ['any'],
  ip: ['string'],
  isIP: ['string'],
  cidr: ['string'],
  isCIDR: ['string'],
  quantity: ['string'],
  isQuantity: ['string'],
  sign: ['any'],
  matches: ['string, string'],
}
/** The same without the receiver. */
const METHODS: Declarations = {
  size: [''],
  startsWith: ['string'],
  endsWith: ['string'],
  contains: ['string'],
  indexOf: ['any', 'string, int'],
  lastIndexOf: ['any', 'string, int'],
  substring: ['int', 'int, int'],
  split: ['string', 'string, int'],
  join: ['', 'string'],
  replace: ['string, string', 'string, string, int'],
  trim: [''],
  charAt: ['int'],
  lowerAscii: [''],
  upperAscii: [''],
  matches: ['string'],
  isSorted: [''],
  sum: [''],
  min: [''],
  max: [''],
  find: ['string'],
  findAll: ['string', 'string, int'],
  all: ['any, any'],
  exists: ['any, any'],
  exists_one: ['any, any'],
  map: ['any, any', 'any, any, any'],
  filter: ['any, any'],
  getFullYear: ['', 'zone'],
  getMonth: ['', 'zone'],
  getDate: ['', 'zone'],
  getDayOfMonth: ['', 'zone'],
  getDayOfWeek: ['', 'zone'],
  getDayOfYear: ['', 'zone'],
  getHours: ['', 'zone'],
  getMinutes: ['', 'zone'],
  getSeconds: ['', 'zone'],
  getMilliseconds: ['', 'zone'],
  isGreaterThan: ['any'],
  isLessThan: ['any'],
  compareTo: ['any'],
  add: ['any', 'int'],
  sub: ['any', 'int'],
  asInteger: [''],
  isInteger: [''],
  asApproximateFloat: [''],
  family: [''],
  isUnspecified: [''],
  isLoopback: [''],
  isLinkLocalMulticast: [''],
  isLinkLocalUnicast: [''],
  isGlobalUnicast: [''],
  containsIP: ['any'],
  containsCIDR: ['any'],
  ip: [''],
  prefixLength: [''],
  masked: [''],
  hasValue: [''],
  value: [''],
  orValue: ['any'],
}
/** Their receiver is the name of the library. */
const LIBRARIES: Readonly<Record<string, Declarations>> = {
  optional: { of: ['any'], none: [''] },
  ip: { isCanonical: ['string'] },
  sets: { contains: ['any, any'], equivalent: ['any, any'], intersects: ['any, any'] },
}

export function isFunction(name: string, args: readonly ASTNode[]): boolean {
  return has(FUNCTIONS, name, args)
}

/** @param library '' = its receiver is a value */
export function isMethod(name: string, args: readonly ASTNode[], library: string): boolean {
  return has(library === '' ? METHODS : (LIBRARIES[library] ?? {}), name, args)
}

export function isLibrary(name: string): boolean {
  return Object.hasOwn(LIBRARIES, name)
}

function has(declarations: Declarations, name: string, args: readonly ASTNode[]): boolean {
  if (!Object.hasOwn(declarations, name)) return false
  return declarations[name]?.some((overload) => fits(overload, args)) === true
}

function isZone(text: string): boolean {
  return zoneMinutes(text) !== undefined
}

/** The checker asks for no types of arguments if the receiver may have any, such as a claim; kube-apiserver does. */
function fits(overload: string, args: readonly ASTNode[]): boolean {
  const types = overload === '' ? [] : overload.split(', ')
  if (types.length !== args.length) return false
  return args.every((arg, i) => {
    if (types[i] === 'zone') return arg.op === 'value' && typeof arg.args === 'string' && isZone(arg.args)
    return arg.op !== 'value' || types[i] === 'any' || types[i] === typeName(arg.args)
  })
}

const TIMESTAMP = 'google.protobuf.Timestamp'
const QUANTITY = 'kubernetes.Quantity'
const IP = 'net.IP'
const CIDR = 'net.CIDR'
const DURATION = 'google.protobuf.Duration'

/** What the checker does not know by itself. */
const SIGNATURES = [
  'string.replace(string, string): string',
  'string.replace(string, string, int): string',
  'string.charAt(int): string',
  'matches(string, string): bool',
  'string.find(string): string',
  'string.findAll(string): list<string>',
  'string.findAll(string, int): list<string>',
  `timestamp(${TIMESTAMP}): ${TIMESTAMP}`,
  `int(${TIMESTAMP}): int`,
  `string(${TIMESTAMP}): string`,
  `duration(${DURATION}): ${DURATION}`,
  `duration(int): ${DURATION}`,
  `int(${DURATION}): int`,
  `string(${DURATION}): string`,
  'list<A>.indexOf(A): int',
  'list<A>.lastIndexOf(A): int',
  ...['int', 'double', DURATION].map((type) => `list<${type}>.sum(): ${type}`),
  ...['int', 'double', 'bool', DURATION, TIMESTAMP, 'string'].flatMap((type) => [
    `list<${type}>.isSorted(): bool`,
    `list<${type}>.min(): ${type}`,
    `list<${type}>.max(): ${type}`,
  ]),
  `quantity(string): ${QUANTITY}`,
  'isQuantity(string): bool',
  `sign(${QUANTITY}): int`,
  `${QUANTITY}.isGreaterThan(${QUANTITY}): bool`,
  `${QUANTITY}.isLessThan(${QUANTITY}): bool`,
  `${QUANTITY}.compareTo(${QUANTITY}): int`,
  `${QUANTITY}.asApproximateFloat(): double`,
  `${QUANTITY}.asInteger(): int`,
  `${QUANTITY}.isInteger(): bool`,
  ...['add', 'sub'].flatMap((name) => [QUANTITY, 'int'].map((type) => `${QUANTITY}.${name}(${type}): ${QUANTITY}`)),
  `ip(string): ${IP}`,
  'isIP(string): bool',
  'IpLibrary.isCanonical(string): bool',
  `string(${IP}): string`,
  `${IP}.family(): int`,
  ...['Unspecified', 'Loopback', 'LinkLocalMulticast', 'LinkLocalUnicast', 'GlobalUnicast'].map(
    (kind) => `${IP}.is${kind}(): bool`,
  ),
  `cidr(string): ${CIDR}`,
  'isCIDR(string): bool',
  `string(${CIDR}): string`,
  `${CIDR}.containsIP(string): bool`,
  `${CIDR}.containsIP(${IP}): bool`,
  `${CIDR}.containsCIDR(string): bool`,
  `${CIDR}.containsCIDR(${CIDR}): bool`,
  `${CIDR}.ip(): ${IP}`,
  `${CIDR}.prefixLength(): int`,
  `${CIDR}.masked(): ${CIDR}`,
  'Sets.contains(list<T>, list<T>): bool',
  'Sets.equivalent(list<T>, list<T>): bool',
  'Sets.intersects(list<T>, list<T>): bool',
]

class UserInfo {}
class Sets {}
class IpLibrary {}

const OPTIONS = {
  enableOptionalTypes: true,
  limits: { maxAstNodes: MAX_PARTS, maxDepth: MAX_DEPTH, maxListElements: 256, maxMapEntries: 256 },
}

function environment(): Environment {
  const never = (): never => {
    throw new Error('only its type is used')
  }
  const made = new Environment(OPTIONS)
    .registerType(QUANTITY, { ctor: Quantity, fields: {} })
    .registerType(IP, { ctor: Ip, fields: {} })
    .registerOperator(`${IP} == ${IP}`, never)
    .registerType(CIDR, { ctor: Cidr, fields: {} })
    .registerOperator(`${CIDR} == ${CIDR}`, never)
    .registerType('IpLibrary', { ctor: IpLibrary, fields: {} })
    .registerConstant('ip', 'IpLibrary', new IpLibrary())
    .registerOperator(`${QUANTITY} == ${QUANTITY}`, never)
    .registerType('Sets', { ctor: Sets, fields: {} })
    .registerConstant('sets', 'Sets', new Sets())
  for (const signature of SIGNATURES) made.registerFunction(signature, never)
  return made
}

export const ENVIRONMENTS: Readonly<Record<ExpressionSubject, Environment>> = {
  claims: environment().registerVariable('claims', 'map<string, dyn>'),
  user: environment()
    .registerType('kubernetes.UserInfo', {
      ctor: UserInfo,
      fields: { username: 'string', uid: 'string', groups: 'list<string>', extra: 'map<string, list<string>>' },
    })
    .registerVariable('user', 'kubernetes.UserInfo'),
}

/** The type that the checker has found for the items of a list; '' = none. */
export function itemType(list: ASTNode): string {
  const type = 'checkedType' in list ? list.checkedType : undefined
  if (typeof type !== 'object' || type === null || !('valueType' in type)) return ''
  const { valueType } = type
  return typeof valueType === 'object' && valueType !== null && 'name' in valueType ? String(valueType.name) : ''
}
