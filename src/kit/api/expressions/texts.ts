// Functions of texts: CEL's own, and those of its extension (github.com/google/cel-go/ext/strings.go), which counts code points.

import { type Cost, ExpressionFault, noOverload } from './values.ts'

type Args = readonly unknown[]

export function callText(name: string, text: string, args: Args, cost: Cost): unknown {
  switch (name) {
    case 'lowerAscii':
      return cost.points(text).replaceAll(/[A-Z]+/g, (upper) => upper.toLowerCase())
    case 'upperAscii':
      return cost.points(text).replaceAll(/[a-z]+/g, (lower) => lower.toUpperCase())
    case 'trim':
      return trim(cost.points(text))
    case 'substring':
      return substring(cost.points(text), args)
    case 'charAt':
      return charAt(cost.points(text), args[0])
    default: {
      const [first, ...others] = args
      return typeof first === 'string'
        ? callSearch(name, text, cost.text(first), others, cost)
        : noOverload(name, text, ...args)
    }
  }
}

function callSearch(name: string, text: string, part: string, others: Args, cost: Cost): unknown {
  if (name !== 'startsWith' && name !== 'endsWith') cost.search(text, part)
  switch (name) {
    case 'startsWith':
      return text.startsWith(part)
    case 'endsWith':
      return text.endsWith(part)
    case 'contains':
      return text.includes(part)
    case 'indexOf':
    case 'lastIndexOf':
      return indexOf(name, cost.points(text), part, others[0])
    case 'split':
      return split(text, part, others[0], cost)
    case 'replace':
      return replace(text, part, others, cost)
    default:
      return noOverload(name, text, part)
  }
}

/** @param offset where to begin; for the last one, where it begins at most */
function indexOf(name: 'indexOf' | 'lastIndexOf', text: string, part: string, offset: unknown): bigint {
  const isLast = name === 'lastIndexOf'
  if (offset === undefined) return pointsBefore(text, isLast ? text.lastIndexOf(part) : text.indexOf(part))
  if (typeof offset !== 'bigint') return noOverload(name, text, part, offset)
  if (part === '') return offset
  if (offset < 0n) throw new ExpressionFault('index out of range')
  const points = [...text]
  if (offset >= points.length) return -1n
  const from = points.slice(0, Number(offset)).join('').length
  return pointsBefore(text, isLast ? text.lastIndexOf(part, from) : text.indexOf(part, from))
}

/** -1 = not found. */
function pointsBefore(text: string, at: number): bigint {
  return at < 0 ? -1n : BigInt([...text.slice(0, at)].length)
}

/** Negative = all. */
function limitOf(name: string, limit: unknown): number {
  if (limit === undefined) return -1
  return typeof limit === 'bigint' ? Number(limit) : noOverload(name, limit)
}

function split(text: string, part: string, limit: unknown, cost: Cost): readonly string[] {
  const most = limitOf('split', limit)
  const parts = part === '' ? [...cost.points(text)] : text.split(part)
  cost.spend(parts.length)
  if (most < 0 || parts.length <= most) return parts
  return most === 0 ? [] : [...parts.slice(0, most - 1), parts.slice(most - 1).join(part)]
}

/** An empty `part` matches before, between and after all characters. */
function replace(text: string, part: string, [by, limit]: Args, cost: Cost): string {
  if (typeof by !== 'string') return noOverload('replace', text, part, by)
  const most = limitOf('replace', limit)
  const parts = part === '' ? ['', ...cost.points(text), ''] : text.split(part)
  // Charged before the result is built, which may be much longer than the text.
  cost.spend(parts.length + (parts.length * by.length) / 64)
  if (most < 0 || parts.length <= most + 1) return parts.join(by)
  return [parts.slice(0, most + 1).join(by), ...parts.slice(most + 1)].join(part)
}

function substring(text: string, [start, end]: Args): string {
  const points = [...text]
  const [from, to] = [indexIn(start), end === undefined ? points.length : indexIn(end)]
  if (from < 0 || from > points.length || to < from || to > points.length) {
    throw new ExpressionFault('index out of range')
  }
  return points.slice(from, to).join('')
}

function charAt(text: string, index: unknown): string {
  const points = [...text]
  const at = indexIn(index)
  if (at < 0 || at > points.length) throw new ExpressionFault('index out of range')
  return points[at] ?? ''
}

function indexIn(value: unknown): number {
  return typeof value === 'bigint' ? Number(value) : noOverload('substring', value)
}

/** Those of Go's unicode.IsSpace; JavaScript's trim() differs in U+0085 and U+FEFF. */
const SPACES = new Set(
  '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
)

function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && SPACES.has(text.charAt(start))) start++
  while (end > start && SPACES.has(text.charAt(end - 1))) end--
  return text.slice(start, end)
}
