// What `portcullis demo` prints: what is running, and lines to copy and paste.

import type { DemoBackend } from './demo-clusters.ts'
import { type ProtectedService, protectionGuide } from './demo-guide-protection.ts'
import { DEMO_TOKENS } from './demo-traffic.ts'

export interface GuideFacts {
  readonly dir: string
  /** Absolute: it is to hold in every directory. */
  readonly kubeconfig: string
  readonly origin: string
  readonly adminPort: number
  readonly backends: readonly DemoBackend[]
  readonly service: ProtectedService
}

export function demoGuide({ dir, kubeconfig, origin, adminPort, backends, service }: GuideFacts): string {
  const ca = `${dir}/pki/ca.crt`
  const prod = `${origin}/clusters/prod`
  const admin = `http://127.0.0.1:${adminPort}`
  const file = `${dir}/objects/prod.yaml`
  const degrade = (what: string): string => `bin/portcullis degrade prod ${what} --context portcullis`
  // Of real clusters the heartbeats do not pass the gateway.
  const heartbeats = backends.some(({ nodes }) => nodes.length > 0)
  const frozen = heartbeats ? ';\nafter twenty seconds without heartbeats the nodes of prod are NotReady' : ''
  const beating = heartbeats ? ': the nodes come back' : ''
  const running = backends.map(({ name, endpoints }) => `  ${name.padEnd(10)}${endpoints.join('  ')}`)
  return `
Portcullis is ready on ${origin}, in front of
${running.join('\n')}
Two dozen requests a second are on it: kubelets, controllers, people, and a ci-bot that asks too much.

The clusters are objects in the gateway's own API server. Edit them; a change is in force at once, a mistake is refused:
  export KUBECONFIG=${kubeconfig}
  kubectl --context portcullis edit uc prod
  kubectl --context portcullis get uc -o wide --watch
  kubectl --context portcullis explain uc.spec.degrade

The degrade switch. Freeze prod: alice is refused and told why, staging and the admin's reserved lane go on${frozen}:
  ${degrade("--mode Freeze --reason 'incident 4711: etcd is being restored' --ttl 10m")}
  ${degrade('--status')}
  kubectl get pods
  kubectl --context prod-admin get nodes
Heartbeats first${beating}, all else stays refused; then reads; then everything, this time with kubectl:
  ${degrade("--mode HeartbeatsOnly --reason 'incident 4711: nodes first'")}
  ${degrade("--mode ReadOnly --reason 'incident 4711: reads are safe'")}
  kubectl --context portcullis patch uc prod --type merge -p '{"spec":{"degrade":{"mode":"Off"}}}'

${protectionGuide(service, backends, admin)}
Look around, through the gateway (alice has a token, admin a client certificate):
  kubectl get pods
  kubectl --context staging-alice get deployments
  kubectl --context prod-admin get nodes -o wide
  kubectl auth whoami
  kubectl scale deployment cart --replicas 12
  kubectl get pods --watch
  kubectl --context default-alice get pods         its server is just ${origin}
Without kubectl:
  alice() { curl -s --cacert ${ca} -H 'Authorization: Bearer ${DEMO_TOKENS.alice}' "$@"; }
  alice ${prod}/api/v1/namespaces/shop/configmaps

Requests of one connection spread over the apiservers; each of these two has served its share:
  curl -s ${admin}/metrics | grep upstream_requests_total
List pods too fast (five a second for each ordinary user; controllers are exempt):
  alice -o /dev/null -w '%{http_code}\\n' '${prod}/api/v1/namespaces/shop/pods?[1-30]' | sort | uniq -c

What would happen to a request, and why:
  bin/portcullis explain --config-dir ${dir}/objects --host prod --user alice GET /api/v1/namespaces/shop/pods
The objects as files, to read, to check, to apply again:
  bin/portcullis check ${dir}/objects
  kubectl --context portcullis apply --server-side --force-conflicts -f ${file}
A user of your own, and how to be rid of it at once, on every replica:
  bin/portcullis certs client --dir ${dir}/pki --user dora --group developers
  bin/portcullis kubeconfig prod --config-dir ${dir}/objects --server ${origin} --ca-file ${ca} \\
    --user-cert ${dir}/pki/dora.crt --user-key ${dir}/pki/dora.key > ${dir}/dora.kubeconfig
  kubectl --kubeconfig ${dir}/dora.kubeconfig auth whoami
  bin/portcullis revoke prod --user dora --context portcullis

What it sees:
  curl -s ${admin}/metrics | grep apiserver_request_total
  curl -s '${admin}/readyz?verbose'
  tail -f ${dir}/access.log
  tail -f ${dir}/gateway.log

Ctrl-C ends all of it.
`
}
