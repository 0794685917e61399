// Determines the value of each setting: flag, then variable, then file, then default. Collects every error.

import { isCollection, isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import type { Setting, ValuesOf } from './setting-rows.ts'
import type { InvalidValue } from './setting-values.ts'

export interface SettingsInput {
  /** Commander's options: camelCase names; undefined = not given. Names that are not settings are ignored. */
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Text of a file; throws if it cannot be read. */
  readonly readFile: (path: string) => string
}

/** An error in a setting, with its location. */
export interface SettingError extends InvalidValue {
  /** `--listen`, `PORTCULLIS_LISTEN` or `gateway.yaml:3 listen`. */
  readonly where: string
}

interface Found {
  readonly where: string
  readonly raw: unknown
}

export class SettingsReader {
  readonly problems: SettingError[] = []
  readonly warnings: string[] = []
  readonly #input: SettingsInput
  readonly #settings: readonly Setting[]
  #file: ReadonlyMap<string, Found> = new Map()

  /** `configFile` is the setting that names the file; `settings` are all others. */
  constructor(input: SettingsInput, settings: readonly Setting[], configFile: Setting<string>) {
    this.#input = input
    this.#settings = settings
    this.#warnOfUnknownVariables([...settings, configFile])
    const path = this.take(configFile)
    if (path !== '') this.#file = this.#readFile(path, this.where(configFile))
    for (const setting of settings) this.#refuseReplaced(setting)
  }

  /** The values in force. */
  read<Table extends Readonly<Record<string, Setting>>>(table: Table): ValuesOf<Table> {
    return Object.fromEntries(Object.entries(table).map(([key, row]) => [key, this.take(row)])) as ValuesOf<Table>
  }

  /** The value in force; the row's `absent` if there is none, or if it is invalid and a problem was added. */
  take<T>(setting: Setting<T>): T {
    const found = this.#find(setting)
    if (found === undefined) return setting.absent
    const single = setting.repeatable || typeof found.raw !== 'object'
    const parsed = single ? setting.parse(found.raw) : NOT_SINGLE
    if ('value' in parsed) return parsed.value
    const shown = typeof found.raw === 'string' ? `"${found.raw}"` : JSON.stringify(found.raw)
    const alone = parsed.message.startsWith(': ') ? parsed.message.slice(2) : `${shown} ${parsed.message}`
    const message = parsed.hidden === true ? parsed.message : alone
    this.problems.push({ where: found.where, message, fix: parsed.fix })
    return setting.absent
  }

  /** Origin of a setting's value; the flag, if it is the default. */
  where(setting: Setting): string {
    const found = this.#find(setting)
    return found === undefined ? setting.flag : found.where
  }

  /** Whether it is set, to any value. */
  isGiven(setting: Setting): boolean {
    return this.#find(setting) !== undefined
  }

  /** Whether it is not set anywhere. */
  isDefault(setting: Setting): boolean {
    return this.#given(setting) === undefined
  }

  #find(setting: Setting): Found | undefined {
    const given = this.#given(setting)
    if (given !== undefined) return given
    return setting.defaultText === '' ? undefined : { where: setting.flag, raw: setting.defaultText }
  }

  #given(setting: Setting): Found | undefined {
    const flag = this.#input.flags[setting.name]
    if (flag !== undefined && !(Array.isArray(flag) && flag.length === 0)) return { where: setting.flag, raw: flag }
    const variable = this.#input.env[setting.env]
    if (variable !== undefined && variable !== '') return { where: setting.env, raw: variable }
    return this.#file.get(setting.name)
  }

  /** Ignoring an old name would silently change the gateway's behaviour. In the file it is detected as an unknown key. */
  #refuseReplaced({ flag, replaced }: Setting): void {
    for (const old of replaced) {
      const given = [
        ...(this.#input.flags[old.name] === undefined ? [] : [old.flag]),
        ...(this.#input.env[old.env] === undefined ? [] : [old.env]),
      ]
      for (const where of given) this.problems.push({ where, ...replacedBy(flag) })
    }
  }

  /** A warning only: in a pod, Kubernetes itself sets variables with our prefix (those of a Service portcullis). */
  #warnOfUnknownVariables(settings: readonly Setting[]): void {
    const names = settings.flatMap((setting) => [setting, ...setting.replaced])
    const known = new Set([...names.map(({ env }) => env), OF_COMMANDS])
    for (const name of Object.keys(this.#input.env)) {
      if (!name.startsWith('PORTCULLIS_') || known.has(name) || SERVICE_LINK.test(name)) continue
      this.warnings.push(`variable ${name} is unknown and has no effect${didYouMean(name, known)}`)
    }
  }

  #readFile(path: string, where: string): ReadonlyMap<string, Found> {
    let text: string
    try {
      text = this.#input.readFile(path)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.problems.push({ where, message: `cannot read "${path}": ${why}`, fix: 'name a readable YAML file' })
      return new Map()
    }
    return this.#readText(path, text)
  }

  #readText(path: string, text: string): ReadonlyMap<string, Found> {
    const lines = new LineCounter()
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
    for (const error of document.errors) {
      const where = `${path}:${lines.linePos(error.pos[0]).line}`
      this.problems.push({ where, message: error.message, fix: 'correct the YAML' })
    }
    const values = new Map<string, Found>()
    if (document.errors.length > 0 || document.contents === null) return values
    if (!isMap(document.contents)) {
      this.problems.push({ where: path, message: 'is not a map of settings', fix: 'write `name: value` lines' })
      return values
    }
    for (const pair of document.contents.items) {
      const name = String(isScalar(pair.key) ? pair.key.value : pair.key)
      const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0
      this.#addKey(values, name, `${path}:${lines.linePos(offset).line} ${name}`, document.get(name))
    }
    return values
  }

  #addKey(values: Map<string, Found>, name: string, where: string, value: unknown): void {
    const known = this.#settings.map((setting) => setting.name)
    const replacement = this.#settings.find(({ replaced }) => replaced.some((old) => old.name === name))
    if (replacement !== undefined) this.problems.push({ where, ...replacedBy(replacement.name) })
    else if (!known.includes(name)) {
      const hint = didYouMean(name, known)
      this.problems.push({
        where,
        message: `unknown key${hint}`,
        fix: hint === '' ? `known keys: ${known.join(', ')}` : 'correct or remove it',
      })
    }
    // `key:` with nothing after it counts as absent.
    else if (value !== null && value !== undefined) {
      values.set(name, { where, raw: isCollection(value) ? value.toJSON() : value })
    }
  }
}

function replacedBy(name: string): InvalidValue {
  return { message: `was replaced by ${name}`, fix: `remove it, and give ${name} if you need it` }
}

const NOT_SINGLE: InvalidValue = { message: 'is not a single value', fix: 'give one value' }

/** Used by commands to find the admin listener: an environment shared with the gateway may contain it. */
const OF_COMMANDS = 'PORTCULLIS_ADMIN'

/** Variables that kubelet sets for Services named portcullis or portcullis-something. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/

function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known)
  return nearest === '' ? '' : `, did you mean ${nearest}?`
}
