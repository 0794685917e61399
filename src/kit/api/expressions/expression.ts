// Expressions in CEL (https://cel.dev), as in kube-apiserver's AuthenticationConfiguration. A library parses them and checks their types; evaluate.ts
// evaluates them. An expression with an unsupported function is refused when the object is written, not when a token arrives.

import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { errorMessage } from '../validation/error-message.ts'

/** What an expression is about. */
export type ExpressionSubject = 'claims' | 'user'

export interface Expression {
  readonly subject: ExpressionSubject
  readonly root: ASTNode
}

export interface InvalidExpression {
  /** Continues its path: `is not a valid expression: ...`. */
  readonly invalid: string
}

/** Maximum characters, nodes and levels of an expression. */
const MAX_LENGTH = 4_096
const MAX_PARTS = 1_000
const MAX_DEPTH = 40

/** Numbers of arguments, without the receiver. */
const FUNCTIONS: Readonly<Record<string, readonly number[]>> = {
  has: [1],
  size: [0, 1],
  string: [1],
  int: [1],
  double: [1],
  dyn: [1],
  startsWith: [1],
  endsWith: [1],
  contains: [1],
  indexOf: [1],
  substring: [1, 2],
  split: [1],
  join: [0, 1],
  replace: [2],
  lowerAscii: [0],
  upperAscii: [0],
  all: [2],
  exists: [2],
  exists_one: [2],
  map: [2, 3],
  filter: [2],
  of: [1],
  none: [0],
  hasValue: [0],
  value: [0],
  orValue: [1],
}
/** Functions of the optional namespace. */
const OPTIONAL = ['of', 'none']

class UserInfo {}

const OPTIONS = {
  enableOptionalTypes: true,
  limits: { maxAstNodes: MAX_PARTS, maxDepth: MAX_DEPTH, maxListElements: 256, maxMapEntries: 256 },
}
const never = (): never => {
  throw new Error('only its type is used')
}
const ENVIRONMENTS: Readonly<Record<ExpressionSubject, Environment>> = {
  claims: new Environment(OPTIONS)
    .registerVariable('claims', 'map<string, dyn>')
    .registerFunction('string.replace(string, string): string', never),
  user: new Environment(OPTIONS)
    .registerType('kubernetes.UserInfo', {
      ctor: UserInfo,
      fields: { username: 'string', uid: 'string', groups: 'list<string>', extra: 'map<string, list<string>>' },
    })
    .registerVariable('user', 'kubernetes.UserInfo')
    .registerFunction('string.replace(string, string): string', never),
}

/** @param type the required type; default: any */
export function parseExpression(
  text: string,
  subject: ExpressionSubject,
  type?: 'bool',
): Expression | InvalidExpression {
  if (text.length > MAX_LENGTH) return { invalid: `has more than ${MAX_LENGTH} characters` }
  try {
    const parsed = ENVIRONMENTS[subject].parse(text)
    const checked = parsed.check()
    if (!checked.valid) return { invalid: `is not a valid expression: ${firstLine(checked.error)}` }
    if (type !== undefined && checked.type !== type) return { invalid: `must evaluate to ${type}` }
    const unknown = unsupported(parsed.ast, subject)
    if (parsed.ast.op === 'id' && parsed.ast.args === subject) return { invalid: asWhole(subject) }
    return unknown === '' ? { subject, root: parsed.ast } : { invalid: unknown }
  } catch (error) {
    return { invalid: `is not a valid expression: ${firstLine(error)}` }
  }
}

export function isInvalidExpression(parsed: Expression | InvalidExpression): parsed is InvalidExpression {
  return 'invalid' in parsed
}

/** Whether it has `claims.FIELD` or `claims.?FIELD` somewhere. */
export function usesField({ subject, root }: Expression, field: string): boolean {
  const uses = (node: ASTNode): boolean => {
    if ((node.op === '.' || node.op === '.?') && node.args[1] === field) {
      const [operand] = node.args
      if (operand.op === 'id' && operand.args === subject) return true
    }
    return partsOf(node).some(uses)
  }
  return uses(root)
}

function firstLine(error: unknown): string {
  return errorMessage(error).split('\n', 1)[0] ?? ''
}

/** The unsupported part; '' = none. As in kube-apiserver, only fields of the subject have values. */
function unsupported(node: ASTNode, subject: ExpressionSubject): string {
  const own = unsupportedNode(node)
  if (own !== '') return own
  const isAccess = node.op === '.' || node.op === '.?' || node.op === '[]' || node.op === '[?]'
  for (const part of partsOf(node)) {
    if (isAccess && part === node.args[0] && part.op === 'id') continue
    const found = part.op === 'id' && part.args === subject ? asWhole(subject) : unsupported(part, subject)
    if (found !== '') return found
  }
  return ''
}

function asWhole(subject: ExpressionSubject): string {
  return `uses ${subject} as a whole: use its fields, and has(${subject}.NAME) instead of in`
}

function unsupportedNode(node: ASTNode): string {
  switch (node.op) {
    case 'value': {
      const { args } = node
      const isKnown = args === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof args)
      return isKnown ? '' : 'has bytes or an unsigned number, which are not supported'
    }
    case '.':
    case '.?':
      return node.args[1].includes('__') ? `has the field ${node.args[1]}: write it as ['NAME']` : ''
    case 'call':
      return unsupportedCall(node.args[0], node.args[1].length, false)
    case 'rcall': {
      const [name, receiver, args] = node.args
      const isOptional = receiver.op === 'id' && receiver.args === 'optional'
      return OPTIONAL.includes(name) === isOptional ? unsupportedCall(name, args.length, true) : notEvaluated(name)
    }
    case 'map':
      return node.args.every(([key]) => key.op === 'value' && typeof key.args === 'string')
        ? ''
        : 'has a map with keys that are not texts, which is not supported'
    default:
      return ''
  }
}

const GLOBAL = ['has', 'size', 'string', 'int', 'double', 'dyn']

function unsupportedCall(name: string, count: number, isMethod: boolean): string {
  if (!Object.hasOwn(FUNCTIONS, name) || FUNCTIONS[name]?.includes(count) !== true) return notEvaluated(name)
  if (name === 'size') return (count === 0) === isMethod ? '' : notEvaluated(name)
  return GLOBAL.includes(name) === isMethod ? notEvaluated(name) : ''
}

function notEvaluated(name: string): string {
  const hint = name === 'matches' ? '; use startsWith, endsWith, contains or split' : ''
  return `has the function ${name}, which is not supported with these arguments${hint}`
}

function partsOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'list':
      return node.args
    case 'map':
      return node.args.flat()
    case '?:':
      return node.args
    case '!_':
    case '-_':
      return [node.args]
    default:
      return node.args
  }
}
