// Matches one list of a rule against one value. `-x`, `*` and empty lists were resolved when the list was compiled.

import type { CompiledList } from '../cluster/compiled-cluster.ts'

/** For verbs, groups, names, users, paths and user agents. */
export function inList(list: CompiledList, value: string): boolean {
  switch (list.kind) {
    case 'all':
      return true
    case 'none':
      return false
    case 'any-of':
      return named(list, value)
    case 'none-of':
      return !named(list, value) || list.except?.has(value) === true
  }
}

/** For a user's groups: at least one is named; if inverted, none is named. */
export function anyInList(list: CompiledList, values: readonly string[]): boolean {
  switch (list.kind) {
    case 'all':
      return true
    case 'none':
      return false
    case 'any-of':
      return anyNamed(list, values)
    case 'none-of':
      return !anyNamed(list, values)
  }
}

/**
 * `combined` is `resource` or `resource/subresource`. `pods` does not cover `pods/exec`; `*`/`exec` is that subresource of every resource.
 */
export function resourceInList(list: CompiledList, combined: string, subresource: string): boolean {
  switch (list.kind) {
    case 'all':
      return true
    case 'none':
      return false
    case 'any-of':
      return list.exact.has(combined) || list.subresources.has(subresource)
    case 'none-of':
      return !(list.exact.has(combined) || list.subresources.has(subresource))
  }
}

function named(list: CompiledList, value: string): boolean {
  if (list.exact.has(value)) return true
  for (const prefix of list.prefixes) if (value.startsWith(prefix)) return true
  return false
}

function anyNamed(list: CompiledList, values: readonly string[]): boolean {
  for (const value of values) if (named(list, value)) return true
  return false
}
