// What the gateway may do in clusters with protected pods: deploy/rbac, as an operator applies it.

import { join } from 'node:path'
import { waitFor } from '../wait.ts'
import type { TestCluster } from './cluster.ts'

const RBAC = join(import.meta.dirname, '../../../deploy/rbac')

/** What a file of deploy/rbac gives. */
export async function grant(cluster: TestCluster, file: string): Promise<void> {
  const applied = await cluster.kubectl(['apply', '-f', join(RBAC, file)])
  if (applied.code !== 0) throw new Error(`granting the gateway its rights: ${applied.stderr}`)
}

/** The ServiceAccount of deploy/rbac, once the cluster knows its rights. */
export async function coreUser(core: TestCluster, generates: boolean): Promise<{ readonly token: string }> {
  const files = ['control-cluster.yaml', 'protection-core.yaml', ...(generates ? ['protection-generator.yaml'] : [])]
  for (const file of files) await grant(core, file)
  const path = '/api/v1/namespaces/portcullis-system/serviceaccounts/portcullis/token'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const answer = await core.request(path, { method: 'POST', body })
  const { token } = answer.json().status ?? {}
  if (typeof token !== 'string') throw new Error(`a token of the gateway: ${answer.text}`)
  const ppr = { group: 'podseidon.kubewharf.io', resource: 'podprotectors' }
  const rights = [
    { verb: 'create', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
    { verb: 'watch', group: '', resource: 'secrets', namespace: 'portcullis-system' },
    { verb: 'update', ...ppr, subresource: 'status' },
    { verb: 'update', group: 'coordination.k8s.io', resource: 'leases', namespace: 'default' },
    ...(generates ? [{ verb: 'create', ...ppr }] : []),
  ]
  for (const resourceAttributes of rights) {
    await waitFor(`the gateway's right to ${resourceAttributes.verb} ${resourceAttributes.resource}`, async () => {
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' }
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
      const body = { ...review, spec: { resourceAttributes } }
      return (await core.request(path, { method: 'POST', user: { token }, body })).json().status?.allowed === true
    })
  }
  return { token }
}
