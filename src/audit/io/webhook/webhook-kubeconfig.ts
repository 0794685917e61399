// The kubeconfig of --audit-webhook-config-file: where events are sent, and with which credentials. KubeCredentials rereads the files it names; the
// kubeconfig itself is replaced by `read`, after an offline check: the receiver may be down.

import { readFileSync } from 'node:fs'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import type { KubeAccessSource } from '../../../kube/io/client-http.ts'
import { loadKubeConfig } from '../../../kube/io/config.ts'
import { type KubeAccess, KubeCredentials } from '../../../kube/io/config-access.ts'
import { checkPems } from '../../../kube/io/config-follow.ts'

export class WebhookKubeconfig implements KubeAccessSource {
  readonly file: string
  #current: KubeCredentials

  /** @throws {UserError} */
  constructor(file: string) {
    this.file = file
    this.#current = readChecked(file)
  }

  get server(): string {
    return this.#current.server
  }

  /** After a change of the file. @throws {UserError} if it is unusable; the previous one then stays in use */
  read(): void {
    this.#current = readChecked(this.file)
  }

  access(): Promise<KubeAccess> {
    return this.#current.access()
  }

  renew(): boolean {
    return this.#current.renew()
  }
}

function readChecked(file: string): KubeCredentials {
  const config = loadKubeConfig({ kubeconfigFile: file })
  const cluster = config.getCurrentCluster()
  const user = config.getCurrentUser()
  const tokenFile: unknown = user?.authProvider?.config?.['tokenFile']
  try {
    if (typeof tokenFile === 'string') readFileSync(tokenFile)
    checkPems({
      ca: pemOf(cluster?.caData, cluster?.caFile),
      cert: pemOf(user?.certData, user?.certFile),
      key: pemOf(user?.keyData, user?.keyFile),
    })
  } catch (error) {
    throw new UserError(`kubeconfig ${file} cannot be used: ${errorMessage(error)}`, 'correct it')
  }
  return new KubeCredentials({ kubeconfigFile: file })
}

function pemOf(data: string | undefined, file: string | undefined): string {
  if (data) return Buffer.from(data, 'base64').toString('latin1')
  return file ? readFileSync(file, 'latin1') : ''
}
