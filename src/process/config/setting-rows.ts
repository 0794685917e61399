// A setting is one row of a table: its key is its name, its function states kind and unit, followed by default, range and help. The configuration
// type, flags, variables, file keys, `--help` and the chart's values derive from it.

import {
  bytesBetween,
  durationBetween,
  integerBetween,
  numberBetween,
  oneOf,
  parseSwitch,
  parseText,
  type ValueParser,
} from './setting-values.ts'

/** The ways to set it. */
interface SettingNames {
  /** Key in the configuration file, and of the flag's value in commander's options. */
  readonly name: string
  /** `--config-dir`. */
  readonly flag: string
  readonly env: string
}

export interface Setting<T = unknown> extends SettingNames {
  /** The flag's value in the help: `<dir>`; in square brackets if optional. */
  readonly argument: string
  /** The flag may be repeated; a variable contains a comma-separated list, the file a list. */
  readonly repeatable: boolean
  /** As a user would write it; '' = none. */
  readonly defaultText: string
  readonly help: string
  readonly parse: ValueParser<T>
  /** The value if there is neither a valid one nor a default. */
  readonly absent: T
  /** Former settings that it replaced: using one is an error that says so. */
  readonly replaced: readonly SettingNames[]
}

/** Content of a row; `settings` adds a name derived from its key. */
export interface Row<T> extends Omit<Setting<T>, keyof SettingNames | 'replaced'> {
  /** Its name, if it differs from the key (without the unit `Ms`). */
  readonly setting?: string
  /** Names of settings that it replaced. */
  readonly replaces?: readonly string[]
}

interface RowOptions<T> {
  readonly setting?: string
  readonly replaces?: readonly string[]
  readonly argument?: string
  readonly absent?: T
  readonly repeatable?: true
}

type Settings<Rows> = { readonly [Key in keyof Rows]: Rows[Key] extends Row<infer T> ? Setting<T> : never }

/** The values read from a table of settings. */
export type ValuesOf<Table> = { readonly [Key in keyof Table]: Table[Key] extends Setting<infer T> ? T : never }

/** @param prefix of all names */
export function settings<Rows extends Readonly<Record<string, Row<unknown>>>>(rows: Rows, prefix = ''): Settings<Rows> {
  const named = Object.entries(rows).map(([key, row]) => [key, nameRow(prefixed(prefix, row.setting ?? key), row)])
  return Object.fromEntries(named) as Settings<Rows>
}

function prefixed(prefix: string, key: string): string {
  const name = key.replace(/Ms$/, '')
  return prefix === '' ? name : `${prefix}${name.charAt(0).toUpperCase()}${name.slice(1)}`
}

/** Flag and variable of a row derive from its name. */
export function nameRow<T>(name: string, { setting: _, replaces = [], ...row }: Row<T>): Setting<T> {
  return { ...row, ...namesFor(name), replaced: replaces.map(namesFor) }
}

function namesFor(name: string): SettingNames {
  const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return { name, flag: `--${words}`, env: `PORTCULLIS_${words.replaceAll('-', '_').toUpperCase()}` }
}

function row<T>(
  argument: string,
  defaultText: string,
  parse: ValueParser<T>,
  absent: T,
  help: string,
  options: RowOptions<T> = {},
): Row<T> {
  return { argument, defaultText, parse, absent, help, repeatable: false, ...options }
}

/** '' = none. @param parse what is allowed; default: any text */
export function text(
  argument: string,
  defaultText: string,
  help: string,
  { parse = parseText, ...options }: RowOptions<string> & { readonly parse?: ValueParser<string> } = {},
): Row<string> {
  return row(argument, defaultText, parse, '', help, options)
}

/** A file path. '' = none. */
export function file(help: string, options?: RowOptions<string>): Row<string> {
  return row('<file>', '', parseText, '', help, options)
}

/** A switch. */
export function toggle(isOn: boolean, help: string): Row<boolean> {
  return row('[bool]', String(isOn), parseSwitch, isOn, help)
}

/** A number in a range. */
type Ranged = (defaultText: string, min: number, max: number, help: string, options?: RowOptions<number>) => Row<number>

function ranged(argument: string, between: (min: number, max: number) => ValueParser<number>): Ranged {
  return (defaultText, min, max, help, options) => row(argument, defaultText, between(min, max), 0, help, options)
}

/** Milliseconds; written as a Go duration. */
export const duration: Ranged = ranged('<duration>', durationBetween)
export const integer: Ranged = ranged('<n>', integerBetween)
export const decimal: Ranged = ranged('<n>', numberBetween)
/** Plain, or with a Kubernetes quantity unit. */
export const bytes: Ranged = ranged('<bytes>', bytesBetween)

/** One of a few words. */
export function choice<const Word extends string>(
  argument: string,
  defaultWord: NoInfer<Word>,
  words: readonly Word[],
  help: string,
): Row<Word> {
  return row(argument, defaultWord, oneOf(words), defaultWord, help)
}

/** A setting that always has a default. @param absent the value while the given one is invalid */
export function withDefault<T>(
  argument: string,
  defaultText: string,
  parse: ValueParser<T>,
  absent: T,
  help: string,
): Row<T> {
  return row(argument, defaultText, parse, absent, help)
}

/** undefined = none. */
export function optional<T>(argument: string, parse: ValueParser<T>, help: string): Row<T | undefined> {
  return row<T | undefined>(argument, '', parse, undefined, help)
}

/** A flag that may be repeated. [] = none. */
export function list<T>(
  argument: string,
  defaultText: string,
  parse: ValueParser<readonly T[]>,
  help: string,
  options?: RowOptions<readonly T[]>,
): Row<readonly T[]> {
  return row<readonly T[]>(argument, defaultText, parse, [], help, { ...options, repeatable: true })
}
