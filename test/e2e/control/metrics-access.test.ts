// /metrics of the health listener by the rights of a real cluster: a ServiceAccount of Prometheus with the ClusterRole of
// deploy/rbac/metrics-reviews.yaml, one without, and a gateway that has the rights of that file.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { withFreePorts } from '../../harness/ports.ts'
import { waitFor } from '../../harness/wait.ts'

const RBAC = resolve(import.meta.dirname, '../../../deploy/rbac')
const NAMESPACE = 'portcullis-system'
let cluster: TestCluster
let gateway: TestGateway
let healthPort = 0

async function tokenOf(account: string): Promise<string> {
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  return String((await cluster.request(path, { method: 'POST', body })).json().status.token)
}

function account(name: string): string {
  return `apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: ${name}, namespace: ${NAMESPACE} }\n---\n`
}

before(async () => {
  cluster = await startCluster()
  for (const file of ['control-cluster.yaml', 'metrics-reviews.yaml']) {
    await cluster.apply(readFileSync(resolve(RBAC, file), 'utf8'))
  }
  await cluster.apply(`${account('prometheus')}${account('other')}apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: prometheus-reads-portcullis }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: portcullis-metrics-reader }
subjects: [{ kind: ServiceAccount, name: prometheus, namespace: ${NAMESPACE} }]
`)
  const kubeconfig = cluster.kubeconfigFor({ token: await tokenOf('portcullis') })
  const control = '--control-listen=127.0.0.1:CONTROL'
  gateway = await withFreePorts(1, async ([port = 0]) => {
    healthPort = port
    return startGateway({
      clusters: [],
      source: ['--source=kubernetes', `--kubeconfig=${kubeconfig}`, control],
      args: [`--health-listen=0.0.0.0:${port}`],
    })
  })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function scrape(token: string): Promise<{ code: number; text: string }> {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(`http://127.0.0.1:${healthPort}/metrics`, { headers })
  return { code: answer.status, text: await answer.text() }
}

test('Prometheus scrapes; who has no right, and who is unknown, does not; probes need nothing', async () => {
  const prometheus = await tokenOf('prometheus')
  // The authoriser reads roles through a watch.
  await waitFor('the right of Prometheus', async () => (await scrape(prometheus)).code === 200)
  assert.match((await scrape(prometheus)).text, /^portcullis_build_info\{/m)
  const other = await scrape(await tokenOf('other'))
  assert.equal(other.code, 403)
  assert.match(other.text, /system:serviceaccount:portcullis-system:other/)
  for (const token of ['', 'invented', `${prometheus}x`]) assert.equal((await scrape(token)).code, 401)
  for (const path of ['livez', 'readyz?verbose']) {
    assert.equal((await fetch(`http://127.0.0.1:${healthPort}/${path}`)).status, 200)
  }
})
