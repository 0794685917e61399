// Which UpstreamClusters a command or a query is about: names, globs, a label selector, or all of them. Every choice that matches nothing is
// an error that says what there is.

import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import { type LabelRequirements, type Labels, labelsMatch } from '../../../kube/core/selectors/label-requirement.ts'
import { parseLabelSelector } from '../../../kube/core/selectors/parse-selector.ts'
import { globMatches, isGlob } from './glob.ts'

/** As given; exactly one of the first three is set. */
export interface ClusterChoice {
  /** Names and globs. */
  readonly names: readonly string[]
  /** undefined = not given. */
  readonly selector: string | undefined
  readonly all: boolean
  /** Names and globs of excluded clusters. */
  readonly except: readonly string[]
}

interface NamedCluster {
  readonly name: string
  readonly labels: Labels
  /** It stands for these UpstreamClusters, and not for itself. Default: it does not. */
  readonly members?: readonly string[] | undefined
}

/** A parsed choice, to be matched with any number of clusters. */
export interface ReadChoice {
  readonly choice: ClusterChoice
  /** undefined = names, or all. */
  readonly requirements: LabelRequirements | undefined
}

/** Maximum names listed in an error. */
const LISTED = 8

/** @throws {UserError} if it contradicts itself, or the selector doesn't parse */
export function readChoice(choice: ClusterChoice): ReadChoice {
  const { names, selector, all, except } = choice
  if (names.length > 0 && all) throw new UserError('a cluster and --all are both given', 'give one of the two')
  if (names.length > 0 && selector !== undefined) {
    throw new UserError('names and --selector are both given', 'give one of the two')
  }
  if (all && selector !== undefined) throw new UserError('--all and --selector are both given', 'give one of the two')
  for (const list of [names, except]) {
    for (const [at, name] of list.entries()) {
      checkName(name)
      if (list.indexOf(name) !== at) throw new UserError(`${quoted(name)} is named twice`, 'name it once')
    }
  }
  return { choice, requirements: selector === undefined ? undefined : readSelector(selector) }
}

/**
 * @returns the chosen clusters, by name
 * @throws {UserError} if a name, a glob or the selector matches nothing
 */
export function chooseClusters<T extends NamedCluster>(read: ReadChoice, known: readonly T[]): readonly T[] {
  const sorted = known.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const chosen = chosenBefore(read, sorted)
  const { except } = read.choice
  const out = new Set(except.length === 0 ? [] : named(except, sorted))
  const isLeft = (one: T): boolean => !out.has(one)
  const left = withMembers(chosen.filter(isLeft), sorted).filter(isLeft)
  if (left.length > 0 || except.length === 0) return left
  throw new UserError('--except leaves out all chosen clusters', `chosen: ${listed(chosen.map(({ name }) => name))}`)
}

/** Members that do not exist are left out. */
function withMembers<T extends NamedCluster>(chosen: readonly T[], sorted: readonly T[]): readonly T[] {
  if (chosen.every(({ members }) => members === undefined)) return chosen
  const names = new Set(chosen.flatMap(({ name, members }) => members ?? [name]))
  return sorted.filter(({ name, members }) => members === undefined && names.has(name))
}

function chosenBefore<T extends NamedCluster>(
  { choice, requirements }: ReadChoice,
  sorted: readonly T[],
): readonly T[] {
  if (requirements !== undefined) {
    const found = sorted.filter(({ labels }) => labelsMatch(requirements, labels))
    if (found.length === 0) throw noneSelected(choice.selector ?? '', requirements, sorted)
    return found
  }
  if (choice.all) {
    if (sorted.length === 0) throw new UserError('there is no UpstreamCluster', 'is --kubeconfig the right one?')
    return sorted
  }
  return named(choice.names, sorted)
}

/** @throws {UserError} naming all words that match nothing */
function named<T extends NamedCluster>(words: readonly string[], sorted: readonly T[]): readonly T[] {
  const chosen = new Set<T>()
  const unknown: string[] = []
  for (const word of words) {
    const found = sorted.filter(({ name }) => (isGlob(word) ? globMatches(word, name) : name === word))
    if (found.length === 0) unknown.push(word)
    for (const one of found) chosen.add(one)
  }
  const [first, ...others] = unknown
  if (first === undefined) return sorted.filter((one) => chosen.has(one))
  const { message, fix } = isGlob(first) ? noneMatches(first, sorted) : noneNamed(first, sorted)
  throw new UserError(others.length === 0 ? message : `${message}, nor ${listed(others.map(quoted))}`, fix)
}

/** Whether it chooses everything without an explicit --all, which kubectl's users expect. */
export function meansEverything({ names }: ClusterChoice): boolean {
  return names.some((name) => /^[*?]+$/.test(name) && name.includes('*'))
}

/** `a, b, c and 497 more` */
export function listed(names: readonly string[], most: number = LISTED): string {
  const more = names.length - most
  return more <= 1 ? names.join(', ') : `${names.slice(0, most).join(', ')} and ${more} more`
}

/** @throws {UserError} naming the place, in kube-apiserver's words */
function readSelector(text: string): LabelRequirements {
  const fix = "write -l region=eu, -l 'region in (eu,us)', -l '!canary', or several with commas"
  if (text.trim() === '') throw new UserError('--selector is empty', `${fix}; for all clusters: --all`)
  try {
    return parseLabelSelector(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new UserError(`--selector ${quoted(text)}: ${error.message}`, fix)
  }
}

/** @throws {UserError} if it is neither a name nor a glob */
function checkName(name: string): void {
  if (name === '') throw new UserError('a name is empty', 'is a variable of the shell not set?')
  if (/^(['"]).*\1$/.test(name)) {
    throw new UserError(`the quotes are part of the name ${quoted(name)}`, `write ${name}, quoted once`)
  }
  if (/[[\]{}]/.test(name)) {
    const fix = 'write * and ?; leave the quotes out, and the shell expands the rest'
    throw new UserError(`${quoted(name)}: brackets and braces are not patterns here`, fix)
  }
}

function noneNamed(name: string, known: readonly NamedCluster[]): UserError {
  const names = known.map((one) => one.name)
  const meant = nearestName(name, names)
  return new UserError(`there is no UpstreamCluster ${quoted(name)}`, fixOf(meant, names))
}

function noneMatches(glob: string, known: readonly NamedCluster[]): UserError {
  const names = known.map(({ name }) => name)
  const stem = glob.replaceAll(/[*?]/g, '').replace(/^-+|-+$/g, '')
  const near = nearestName(stem, new Set(names.flatMap(partsOf)))
  if (near === '' || names.includes(near))
    return new UserError(`${quoted(glob)} matches no UpstreamCluster`, fixOf(near, names))
  const meant = names.some((name) => name.startsWith(near)) ? `'${near}*'` : `'*${near}*'`
  return new UserError(`${quoted(glob)} matches no UpstreamCluster`, fixOf(meant, names))
}

/** Prefixes and suffixes up to a hyphen or dot, which globs usually name. */
function partsOf(name: string): string[] {
  const cuts = [...name.matchAll(/[-.]/g)].map(({ index }) => index)
  return [name, ...cuts.flatMap((at) => [name.slice(0, at), name.slice(at + 1)])]
}

function fixOf(meant: string, names: readonly string[]): string {
  if (names.length === 0) return 'this API server has none'
  return `${meant === '' ? '' : `did you mean ${meant}? `}known: ${listed(names)}`
}

function noneSelected(text: string, requirements: LabelRequirements, known: readonly NamedCluster[]): UserError {
  const problem = `--selector ${quoted(text)} matches no UpstreamCluster`
  if (known.length === 0) return new UserError(problem, 'this API server has none')
  const values = valuesByKey(known)
  if (values.size === 0) return new UserError(problem, 'none has a label: kubectl label uc NAME region=eu')
  // The first requirement that no cluster meets is the most helpful explanation.
  const culprit = requirements.find((one) => !known.some(({ labels }) => labelsMatch([one], labels)))
  if (culprit === undefined) return new UserError(problem, 'each part matches some, but none matches all parts')
  const { key } = culprit
  const has = values.get(key)
  if (has === undefined) {
    const meant = nearestName(key, values.keys())
    const hint = meant === '' ? '' : `did you mean ${meant}? `
    return new UserError(problem, `${hint}none has the label ${key}; labels are ${listed([...values.keys()].sort())}`)
  }
  const [wanted = ''] = culprit.values
  const meant = nearestName(wanted, has)
  const hint = meant === '' || meant === wanted ? '' : `did you mean ${key}=${meant}? `
  return new UserError(problem, `${hint}${key} is ${listed([...has].sort())}`)
}

function valuesByKey(known: readonly NamedCluster[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const { labels } of known) {
    for (const [key, value] of Object.entries(labels)) {
      const values = found.get(key) ?? new Set()
      found.set(key, values.add(value))
    }
  }
  return found
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text)
}
