// The values of all currently known secrets, to redact them wherever they show up in the process's output: error messages of other servers,
// annotations, log lines. In addition to what redact.ts finds by names and patterns.

import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { HiddenValues, isTooShort, LEAST_SECRET } from '../../../gateway/core/identity/hidden-values.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { isSecretName, redact, redactText } from '../../../kit/core/text/redact.ts'
import { kubeConfigFiles } from '../../../kube/io/config.ts'
import type { Config } from '../../../process/config/config.ts'

/** Previous values of changed files are kept for log lines that may contain them. */
const MAX_REMEMBERED = 1_000

/** Redaction for one response. */
export interface Redaction {
  /** A plain copy for JSON. */
  object(value: unknown): unknown
  text(text: string): string
  /** Secrets that are not searched for, and why: names, no values. */
  readonly report: object
}

export class KnownSecrets {
  readonly #config: Config
  readonly #clusters: ClusterTable
  readonly #remembered = new Set<string>()
  #last: { readonly values: ReadonlySet<string>; readonly hidden: HiddenValues } | undefined

  /** Reads the settings' files, to know their values even after they have changed. */
  constructor(config: Config, clusters: ClusterTable) {
    this.#config = config
    this.#clusters = clusters
    this.#ofSettings()
  }

  /** Rereads the files. @param others values it cannot know @throws {TooManySecrets} */
  redaction(others: readonly string[] = []): Redaction {
    const { unread, tooShort } = this.#ofSettings()
    const values = new Set([...this.#remembered, ...others])
    for (const { compiled } of this.#clusters.values()) {
      const { client, serving } = compiled
      const own = [client.bearerToken, client.key, serving.key]
      for (const value of own) values.add(value)
      if (own.some(isTooShort)) tooShort.add(`credentials of the cluster ${compiled.name}`)
    }
    const hidden = this.#hidden(values)
    const text = (shown: string): string => redactText(hidden.hide(shown))
    return {
      object: (value) => redact(value, text),
      text,
      report: { shorterThan: LEAST_SECRET, tooShortToLookFor: [...tooShort], filesNotRead: [...new Set(unread)] },
    }
  }

  #ofSettings(): { readonly unread: readonly string[]; readonly tooShort: Set<string> } {
    const { found, unread } = settingSecrets(this.#config)
    for (const { value } of found) {
      this.#remembered.delete(value)
      this.#remembered.add(value)
    }
    for (const value of this.#remembered) {
      if (this.#remembered.size <= Math.max(MAX_REMEMBERED, found.length)) break
      this.#remembered.delete(value)
    }
    return { unread, tooShort: new Set(found.filter(({ value }) => isTooShort(value)).map(({ setting }) => setting)) }
  }

  /** Reuses the last result if there are no others, because computing it takes a while with many clusters. */
  #hidden(values: ReadonlySet<string>): HiddenValues {
    const last = this.#last
    if (last !== undefined && last.values.size === values.size && [...values].every((value) => last.values.has(value)))
      return last.hidden
    const hidden = new HiddenValues(values)
    this.#last = { values, hidden }
    return hidden
  }
}

// Secrets reachable from settings: in files that contain nothing else, in kubeconfigs with the files they name, and in URLs. The settings are
// recognized by name, so that later ones are covered.
interface FoundSecret {
  /** The setting that leads to it. */
  readonly setting: string
  readonly value: string
}

interface SettingSecrets {
  readonly found: readonly FoundSecret[]
  /** Settings that lead to a file that cannot be read now. */
  readonly unread: readonly string[]
}

const SECRET_FILE = /(token|password|secret|key)file$/i
const KUBECONFIG = /kubeconfig$|^auditWebhookConfigFile$/i
const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'
/** Maximum bytes of a file. */
const MAX_FILE = 2 ** 20
const MAX_DEPTH = 12
/** A user with such a name is hidden in its URL, but not wherever else the word occurs: `default`, `portcullis`. */
const WORD = /^[a-z._-]*$/i

/** Reads the files on each call. */
function settingSecrets(config: Config): SettingSecrets {
  const reader = new SecretReader()
  for (const [name, value] of [...Object.entries(config), ...Object.entries(config.protection)]) {
    if (typeof value === 'string' && value !== '') reader.setting(name, value)
  }
  if (config.source === 'kubernetes' && config.kubeconfig === '') reader.usualKubeconfig()
  return reader
}

class SecretReader implements SettingSecrets {
  readonly found: FoundSecret[] = []
  readonly unread: string[] = []
  #setting = ''

  setting(name: string, value: string): void {
    this.#setting = name
    this.#userInfo(value)
    if (isSecretName(name)) this.#add(value)
    if (/headersfile$/i.test(name)) this.#headers(value)
    else if (/credentialsfile$/i.test(name)) this.#credentials(value)
    else if (SECRET_FILE.test(name)) this.#add(this.#text(value))
    if (KUBECONFIG.test(name)) this.#kubeconfig(value)
  }

  /** The file that kubectl would use. */
  usualKubeconfig(): void {
    this.#setting = 'kubeconfig'
    const files = kubeConfigFiles({ kubeconfigFile: '' })
    for (const file of files) this.#kubeconfig(file)
    if (files.length === 0) this.#add(this.#text(POD_TOKEN))
  }

  #add(value: string): void {
    if (value.trim() !== '') this.found.push({ setting: this.#setting, value: value.trim() })
  }

  #text(file: string): string {
    try {
      const found = statSync(file)
      if (found.isFile() && found.size <= MAX_FILE) return readFileSync(file, 'utf8')
    } catch {
      // Treated like one that is too large.
    }
    this.unread.push(this.#setting)
    return ''
  }

  #headers(file: string): void {
    for (const line of this.#text(file).split('\n')) this.#headerValue(line.slice(line.indexOf(':') + 1).trim())
  }

  /** AWS's shared credentials file. */
  #credentials(file: string): void {
    for (const line of this.#text(file).split('\n')) {
      const [name = '', value = ''] = line.split(/=(.*)/)
      if (isSecretVariable(name.trim())) this.#add(value)
    }
  }

  /** Includes the credentials after the scheme, and the password of Basic ones. */
  #headerValue(value: string): void {
    this.#add(value)
    const [scheme = '', credentials = ''] = value.split(/\s+(.*)/)
    this.#add(credentials)
    if (scheme.toLowerCase() === 'basic')
      this.#add(
        Buffer.from(credentials, 'base64')
          .toString()
          .replace(/^[^:]*:/, ''),
      )
  }

  #userInfo(url: string): void {
    const userInfo = /:\/\/([^\s/?#]*)@/.exec(url)?.[1] ?? ''
    const [user = '', password = ''] = userInfo.split(/:(.*)/s)
    for (const part of WORD.test(user) ? [password] : [user, password]) {
      for (const value of new Set([part, decoded(part)])) this.#add(value)
    }
  }

  #kubeconfig(file: string): void {
    let document: unknown
    try {
      document = parse(this.#text(file), { logLevel: 'error' })
    } catch {
      this.unread.push(this.#setting)
    }
    this.#kubeconfigFields(document, dirname(resolve(file)), 0)
  }

  #kubeconfigFields(value: unknown, dir: string, depth: number): void {
    if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return
    // A plugin's environment variables.
    if (isRecord(value) && typeof value['name'] === 'string' && isSecretVariable(value['name'])) {
      this.#add(String(value['value'] ?? ''))
    }
    for (const [name, item] of Object.entries(value)) {
      if (typeof item !== 'string') this.#kubeconfigFields(item, dir, depth + 1)
      else this.#kubeconfigField(name, item, dir)
    }
  }

  #kubeconfigField(name: string, value: string, dir: string): void {
    this.#userInfo(value)
    if (name === 'tokenFile' || name === 'client-key') this.#add(this.#text(resolve(dir, value)))
    if (isSecretName(name)) this.#add(value)
    if (name.endsWith('-key-data')) this.#add(Buffer.from(value, 'base64').toString())
    // A plugin's argument.
    const [, flag = '', given = ''] = /^--?([\w-]+)=(.*)$/s.exec(value) ?? []
    if (isSecretVariable(flag)) this.#add(given)
  }
}

function isSecretVariable(name: string): boolean {
  return isSecretName(name) || /key$/i.test(name)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
