// Resources as kubectl writes them: `pods`, `pods/log`, `deployments.apps`, `pods/*`. Without a group any group is meant; `pods` is not
// `pods/log`, as in dispatchPolicies.

import { effectiveEntries } from '../cluster/compile-rules.ts'

interface ResourcePattern {
  readonly resource: Glob
  /** undefined = any. */
  readonly group: Glob | undefined
  /** '' = none. */
  readonly subresource: Glob
}

interface Glob {
  readonly text: string
  readonly isPrefix: boolean
}

export interface ResourcePatterns {
  readonly kind: 'all' | 'any-of' | 'none-of'
  readonly patterns: readonly ResourcePattern[]
}

/** An empty list matches everything. */
export function compileResourcePatterns(entries: readonly string[]): ResourcePatterns {
  const effective = effectiveEntries(entries)
  if (effective.length === 0 || effective.includes('*')) return { kind: 'all', patterns: [] }
  const inverted = effective.every((entry) => entry.startsWith('-'))
  const texts = inverted ? effective.map((entry) => entry.slice(1)) : effective
  return { kind: inverted ? 'none-of' : 'any-of', patterns: texts.map(compilePattern) }
}

/** What is compared of a request. */
export interface RequestedResource {
  readonly resource: string
  readonly apiGroup: string
  readonly subresource: string
}

export function resourceMatches({ kind, patterns }: ResourcePatterns, requested: RequestedResource): boolean {
  if (kind === 'all') return true
  for (const pattern of patterns) if (patternMatches(pattern, requested)) return kind === 'any-of'
  return kind === 'none-of'
}

function patternMatches(pattern: ResourcePattern, { resource, apiGroup, subresource }: RequestedResource): boolean {
  if (!globMatches(pattern.resource, resource)) return false
  if (pattern.group !== undefined && !globMatches(pattern.group, apiGroup)) return false
  // A subresource of '' is none; the star of `pods/*` stands for none, too, as in audit policies.
  return subresource === '' ? pattern.subresource.text === '' : globMatches(pattern.subresource, subresource)
}

function compilePattern(text: string): ResourcePattern {
  const slash = text.indexOf('/')
  const whole = slash < 0 ? text : text.slice(0, slash)
  const dot = whole.indexOf('.')
  return {
    resource: compileGlob(dot < 0 ? whole : whole.slice(0, dot)),
    group: dot < 0 ? undefined : compileGlob(whole.slice(dot + 1)),
    subresource: compileGlob(slash < 0 ? '' : text.slice(slash + 1)),
  }
}

function compileGlob(text: string): Glob {
  return text.endsWith('*') ? { text: text.slice(0, -1), isPrefix: true } : { text, isPrefix: false }
}

function globMatches({ text, isPrefix }: Glob, value: string): boolean {
  return isPrefix ? value.startsWith(text) : value === text
}
