// One line of `portcullis explain --stdin`: JSON, of which only the fields that a request has are read, so that a line
// of the access log serves as it is.

import type { ExplainInput } from './explain-request.ts'

/** `{ error }` says what is wrong with the line. */
export function parseExplainLine(line: string): ExplainInput | { readonly error: string } {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return { error: 'not JSON' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { error: 'not a JSON object' }
  const fields = new Map<string, unknown>(Object.entries(value))
  const method = fields.get('method')
  const target = fields.get('target')
  if (typeof method !== 'string' || method === '') return { error: '"method" must be a string such as "GET"' }
  if (typeof target !== 'string' || target === '') return { error: '"target" must be a string such as "/api/v1/pods"' }
  const input: ExplainInput = { method, target }
  for (const key of ['host', 'user', 'userAgent', 'remoteAddress'] as const) {
    const text = fields.get(key) ?? undefined
    if (text === undefined) continue
    if (typeof text !== 'string') return { error: `"${key}" must be a string` }
    input[key] = text
  }
  const groups = fields.get('groups') ?? undefined
  if (groups === undefined) return input
  if (!isStrings(groups)) return { error: '"groups" must be a list of strings' }
  input.groups = groups
  return input
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}
