// The user of a kubeconfig's current context, with its credentials from the file. Plugins are not run: their output is not in the file.

import { dirname, resolve } from 'node:path'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseYaml } from '../core/objects/yaml-text.ts'

type User = Readonly<Record<string, unknown>>

/** Reads a file that the kubeconfig names. */
type ReadFile = (path: string) => string

export interface KubeconfigUser {
  /** For people: `user "vera" of vera.kubeconfig`. */
  readonly owner: string
  readonly file: string
  readonly user: User
}

/**
 * @param text of the file
 * @returns undefined if it is not a kubeconfig
 * @throws {UserError} if it has several users and current-context selects none of them: nothing is guessed
 */
export function currentUserIn(text: string, file: string): KubeconfigUser | undefined {
  if (!/["']?kind["']?[ \t]*:[ \t]*["']?Config\b/.test(text)) return undefined
  let config: unknown
  try {
    const { value, duplicates } = parseYaml(text)
    if (duplicates.length > 0) throw new SyntaxError('a key is given twice')
    config = value
  } catch {
    // The parser's message quotes the line, and with it a token.
    throw new UserError(`${file} is not YAML`, 'write it with: kubectl config')
  }
  if (!isRecord(config) || config['kind'] !== 'Config') return undefined
  const { name, user } = userOf(config, file)
  return { owner: `user ${JSON.stringify(name)} of ${file}`, file, user }
}

/** PEM. Like client-go: inline data takes precedence over the file. @throws {UserError} if there is none */
export function certificateOfUser({ user, file, owner }: KubeconfigUser, read: ReadFile): string {
  const data = textOf(user['client-certificate-data'])
  if (data !== '') return Buffer.from(data, 'base64').toString('utf8')
  const path = textOf(user['client-certificate'])
  if (path !== '') return read(resolve(dirname(file), path))
  throw new UserError(`${owner} has no client certificate`, 'give the certificate itself, as PEM')
}

/** Like client-go: the file takes precedence over an inline token. @throws {UserError} if there is none */
export function tokenOfUser({ user, file, owner }: KubeconfigUser, read: ReadFile): string {
  const path = textOf(user['tokenFile'])
  const token = path === '' ? textOf(user['token']) : read(resolve(dirname(file), path))
  if (token.trim() === '')
    throw new UserError(`${owner} has no token`, 'give a file with the bearer token and nothing else')
  return token
}

function userOf(config: Readonly<Record<string, unknown>>, file: string): { name: string; user: User } {
  const users = entriesOf(config, 'users', 'user')
  const [single] = users
  if (single === undefined) throw new UserError(`${file} has no users`, 'write it with: kubectl config')
  if (users.length === 1) return { name: single.name, user: single.value }
  const current = config['current-context']
  const context = entriesOf(config, 'contexts', 'context').find(({ name }) => name === current)
  const chosen = users.filter(({ name }) => name === context?.value['user'])
  const [one] = chosen
  if (one !== undefined && chosen.length === 1) return { name: one.name, user: one.value }
  throw new UserError(
    `${file} has several users, and current-context selects none of them`,
    'say which one: kubectl config use-context NAME --kubeconfig FILE, or give the certificate or token alone',
  )
}

function entriesOf(
  config: Readonly<Record<string, unknown>>,
  list: string,
  field: string,
): { readonly name: string; readonly value: User }[] {
  const entries: readonly unknown[] = Array.isArray(config[list]) ? config[list] : []
  return entries.flatMap((entry) => {
    if (!isRecord(entry) || typeof entry['name'] !== 'string') return []
    const value = entry[field]
    return [{ name: entry['name'], value: isRecord(value) ? value : {} }]
  })
}
