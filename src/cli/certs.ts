// `portcullis certs`: a PKI to start with. `init` creates a CA and a serving certificate, `client` creates user certificates signed by
// the CA. Existing files are not overwritten without --force: replacing the CA locks out all users.

import { UserError } from '../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../kit/api/validation/ip-address.ts'
import { createCA, issueCertificate, issueServingCertificate } from '../pki/io/pki.ts'
import { existingPairFiles, readKeyPair, writeKeyPair } from '../pki/io/pki-files.ts'
import { type CommandOutput, reportUserErrors } from './command/output.ts'

export interface CertsInitOptions extends CommandOutput {
  dir: string
  /** Host names and addresses of the gateway; at least one. */
  hosts: readonly string[]
  /** Overwrite. Default false. */
  force?: boolean
}

export interface CertsClientOptions extends CommandOutput {
  /** Directory in which `init` created ca.crt and ca.key. */
  dir: string
  /** The user's name: the common name. */
  user: string
  groups: readonly string[]
  /** The user's UID. Default: none. */
  uid?: string
  /** Base name of the files. Default: the user's name, with `_` for characters that are unsafe in file names. */
  name?: string
  /** Validity. Default 365. */
  days?: number
  force?: boolean
}

const CA_NAME = 'ca'
const SERVING_NAME = 'tls'

/** Writes ca.crt, ca.key, tls.crt and tls.key to `dir`. Returns the exit code. */
export function certsInit(options: CertsInitOptions): number {
  return reportUserErrors(options.err, () => {
    const { dir, hosts } = options
    if (hosts.length === 0) throw new UserError('no host given', 'name the gateway: --host gateway.example.com')
    for (const host of hosts)
      if (!isHost(host)) throw new UserError(`not a host name or address: ${host}`, 'correct --host')
    refuseOverwrite(dir, [CA_NAME, SERVING_NAME], options.force)
    const ca = createCA({ commonName: 'portcullis CA' })
    const serving = issueServingCertificate(ca, hosts)
    writeKeyPair(dir, CA_NAME, ca)
    writeKeyPair(dir, SERVING_NAME, serving)
    options.out(
      `${dir}/ca.crt, ca.key    the CA: clients trust it, clusters name it as clientCA; keep its key safe\n` +
        `${dir}/tls.crt, tls.key  the serving certificate for ${hosts.join(', ')}\n`,
    )
    return 0
  })
}

/** Writes NAME.crt and NAME.key to `dir`, signed by the CA there. Returns the exit code. */
export function certsClient(options: CertsClientOptions): number {
  return reportUserErrors(options.err, () => {
    const { dir, user, groups, uid } = options
    if (user === '') throw new UserError('no user given', 'name one: --user alice')
    if (uid === '') throw new UserError('the uid is empty', 'leave --uid out, or give one')
    if (options.days !== undefined && !(options.days >= 1))
      throw new UserError('the validity is not a number of days', 'correct --days')
    const name = options.name ?? fileNameOf(user)
    if (name === CA_NAME || name === SERVING_NAME) {
      throw new UserError(
        `${name}.crt is the ${name === CA_NAME ? 'CA' : 'serving certificate'}`,
        'give another --name',
      )
    }
    const ca = readKeyPair(dir, CA_NAME)
    if (ca === undefined)
      throw new UserError(`there is no CA in ${dir}`, `run: portcullis certs init --dir ${dir} --host HOST`)
    refuseOverwrite(dir, [name], options.force)
    const pair = issueCertificate(ca, {
      commonName: user,
      organizations: groups,
      usage: 'client',
      ...(uid === undefined ? {} : { uid }),
      ...(options.days === undefined ? {} : { days: options.days }),
    })
    writeKeyPair(dir, name, pair)
    const membership = groups.length === 0 ? 'no groups' : `groups ${groups.join(', ')}`
    options.out(`${dir}/${name}.crt, ${name}.key  user ${user}, ${membership}\n`)
    return 0
  })
}

function refuseOverwrite(dir: string, names: readonly string[], force = false): void {
  if (force) return
  const existing = names.flatMap((name) => existingPairFiles(dir, name))
  if (existing.length === 0) return
  throw new UserError(
    `${existing.join(', ')} ${existing.length === 1 ? 'exists' : 'exist'}`,
    'use --force to overwrite',
  )
}

function fileNameOf(user: string): string {
  return user
    .replace(/[^\w.@-]/g, '_')
    .replace(/^\./, '_')
    .slice(0, 100)
}

function isHost(text: string): boolean {
  return canonicalIp(text) !== undefined || /^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(text)
}
