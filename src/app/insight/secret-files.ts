// The secrets that settings lead to: in files that hold nothing else, in kubeconfigs with the files that these name, and in URLs. Which
// settings these are is known by their names, so that a setting added later is covered.

import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { isRecord } from '../../api/kube/object-shape.ts'
import { isSecretName } from '../../core/identity/redact.ts'
import { kubeConfigFiles } from '../../io/kube/config.ts'
import type { Config } from '../config/config.ts'

export interface FoundSecret {
  /** The setting that leads to it. */
  readonly setting: string
  readonly value: string
}

export interface SettingSecrets {
  readonly found: readonly FoundSecret[]
  /** Settings that lead to a file that cannot be read now. */
  readonly unread: readonly string[]
}

const SECRET_FILE = /(token|password|secret|headers|key)file$/i
const KUBECONFIG = /kubeconfig$|^auditWebhookConfigFile$/i
const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'
/** Bytes of a file. */
const MAX_FILE = 2 ** 20
const MAX_DEPTH = 12
/** A user that is called so is hidden where its URL is, but not wherever else the word stands: `default`, `portcullis`. */
const WORD = /^[a-z._-]*$/i

/** Reads the files, each time. */
export function settingSecrets(config: Config): SettingSecrets {
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
    if (SECRET_FILE.test(name)) this.#file(value, /headersfile$/i.test(name))
    if (KUBECONFIG.test(name)) this.#kubeconfig(value)
  }

  /** As kubectl finds it. */
  usualKubeconfig(): void {
    this.#setting = 'kubeconfig'
    const files = kubeConfigFiles({ kubeconfigFile: '' })
    for (const file of files) this.#kubeconfig(file)
    if (files.length === 0) this.#file(POD_TOKEN)
  }

  #add(value: string): void {
    if (value.trim() !== '') this.found.push({ setting: this.#setting, value: value.trim() })
  }

  #text(file: string): string {
    try {
      const found = statSync(file)
      if (found.isFile() && found.size <= MAX_FILE) return readFileSync(file, 'utf8')
    } catch {
      // As one that is too large.
    }
    this.unread.push(this.#setting)
    return ''
  }

  #file(file: string, ofHeaders = false): void {
    const text = this.#text(file)
    if (!ofHeaders) this.#add(text)
    else for (const line of text.split('\n')) this.#headerValue(line.slice(line.indexOf(':') + 1).trim())
  }

  /** Also the credentials after the scheme, and the password in those of Basic. */
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
    // Variables of a plugin.
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
    if (name === 'tokenFile' || name === 'client-key') this.#file(resolve(dir, value))
    if (isSecretName(name)) this.#add(value)
    if (name.endsWith('-key-data')) this.#add(Buffer.from(value, 'base64').toString())
    // An argument of a plugin.
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
