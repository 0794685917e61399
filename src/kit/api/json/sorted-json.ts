// JSON with sorted keys, for comparing values.

import { isRecord } from './object-shape.ts'

/** JSON with sorted object keys: equal text means equal value. */
export function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort(compareText)
    .map((key) => `${JSON.stringify(key)}:${sortedJson(value[key])}`)
  return `{${members.join(',')}}`
}

/** Go's string order: by UTF-8 bytes, which is code point order. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left === right) continue
    // A surrogate stands for a code point above every other code unit.
    const leftHigh = left >= 0xd800 && left < 0xe000
    const rightHigh = right >= 0xd800 && right < 0xe000
    if (leftHigh !== rightHigh) return leftHigh ? 1 : -1
    return left - right
  }
  return a.length - b.length
}
