// What the gateway sees of a VIP, between real network namespaces: the VIP itself where it is an address of the host (keepalived, kube-vip, LVS
// by direct routing), its own address where the destination was rewritten (LVS with NAT, kube-proxy). It needs to be root.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { createCA } from '../../src/pki/io/pki.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'
import { MAIN } from '../harness/program.ts'
import { waitFor } from '../harness/wait.ts'

const VIP = '192.0.2.80'
const NAT_VIP = '192.0.2.81'
const [CLIENT, HOST] = ['10.99.0.1', '10.99.0.2']
const [OUTSIDE, INSIDE] = [`pxc${process.pid}`, `pxg${process.pid}`]
const probe = spawnSync('ip', ['netns', 'add', `pxp${process.pid}`], { encoding: 'utf8' })
if (probe.status === 0) spawnSync('ip', ['netns', 'del', `pxp${process.pid}`])
const skip = probe.status === 0 ? false : 'network namespaces cannot be made here'
let dir: string
let gateway: RunningProcess | undefined

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}

before(async () => {
  if (skip !== false) return
  dir = mkdtempSync(join(tmpdir(), 'portcullis-netns-'))
  for (const name of [OUTSIDE, INSIDE]) ip('netns', 'add', name)
  ip('link', 'add', 'pxc0', 'netns', OUTSIDE, 'type', 'veth', 'peer', 'name', 'pxg0', 'netns', INSIDE)
  ip('-n', OUTSIDE, 'address', 'add', `${CLIENT}/24`, 'dev', 'pxc0')
  ip('-n', INSIDE, 'address', 'add', `${HOST}/24`, 'dev', 'pxg0')
  for (const [name, device] of [
    [OUTSIDE, 'pxc0'],
    [INSIDE, 'pxg0'],
    [INSIDE, 'lo'],
  ] as const) {
    ip('-n', name, 'link', 'set', device, 'up')
  }
  // As keepalived and kube-vip do it, and as the hosts behind LVS by direct routing have it.
  ip('-n', INSIDE, 'address', 'add', `${VIP}/32`, 'dev', 'lo')
  for (const vip of [VIP, NAT_VIP]) ip('-n', OUTSIDE, 'route', 'add', `${vip}/32`, 'via', HOST)
  const config = join(dir, 'config')
  mkdirSync(config)
  const stub = { url: 'https://127.0.0.1:1', caPem: createCA({ commonName: 'none' }).certPem }
  for (const [name, address] of [
    ['by-vip', VIP],
    ['by-host', HOST],
  ] as const) {
    const { spec, ...head } = clusterObject([], { name })
    const servers = [{ endpoint: stub.url }]
    const clientConfig = { ...spec.clientConfig, caData: Buffer.from(stub.caPem).toString('base64') }
    const object = { ...head, spec: { ...spec, servers, clientConfig, addresses: { ips: [address] } } }
    writeFileSync(join(config, `${name}.yaml`), stringify(object))
  }
  gateway = await startGatewayInside(config)
})
after(async () => {
  await gateway?.stop(0)
  if (skip !== false) return
  for (const name of [OUTSIDE, INSIDE]) spawnSync('ip', ['netns', 'del', name])
  rmSync(dir, { recursive: true, force: true })
})

function startGatewayInside(config: string): Promise<RunningProcess> {
  const flags = ['--source=files', `--config-dir=${config}`, `--data-dir=${join(dir, 'data')}`, '--threads=1']
  const ports = ['--listen=0.0.0.0:8443', '--health-listen=0.0.0.0:8081', `--audit-log-path=${join(dir, 'audit.log')}`]
  return startProcess({
    name: 'gateway',
    command: 'ip',
    args: ['netns', 'exec', INSIDE, process.execPath, MAIN, 'serve', ...flags, ...ports],
    env: { NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined, NODE_V8_COVERAGE: undefined },
    logFile: join(dir, 'gateway.log'),
    // As a balancer asks, from outside.
    ready: () => curl(`http://${HOST}:8081/readyz`) === 'ok',
  })
}

function curl(url: string): string {
  const args = ['netns', 'exec', OUTSIDE, 'curl', '-sk', '--max-time', '10', url]
  return spawnSync('ip', args, { encoding: 'utf8' }).stdout
}

interface Seen {
  readonly source: string
  readonly cluster: string
}

async function request(address: string, audited: number): Promise<Seen> {
  curl(`https://${address}:8443/api/v1/pods`)
  return await waitFor('its audit event', () => {
    const lines = readFileSync(join(dir, 'audit.log'), 'utf8').trim().split('\n')
    const event = lines.length > audited ? JSON.parse(lines.at(-1) ?? '') : undefined
    return event && { source: event.sourceIPs[0], cluster: event.annotations['portcullis.io/cluster'] }
  })
}

test('the destination is the VIP where the host has it; the source is the client', { skip }, async () => {
  assert.deepEqual(await request(VIP, 0), { source: CLIENT, cluster: 'by-vip' })
})

test('the destination is the host where the VIP was rewritten; the source is the client', { skip }, async (t) => {
  const rule = ['-t', 'nat', '-A', 'PREROUTING', '-d', NAT_VIP, '-p', 'tcp', '-j', 'DNAT', '--to-destination', HOST]
  const nat = spawnSync('ip', ['netns', 'exec', INSIDE, 'iptables', ...rule], { encoding: 'utf8' })
  if (nat.status !== 0) return t.skip(`no NAT here: ${nat.stderr || nat.error?.message}`)
  assert.deepEqual(await request(NAT_VIP, 1), { source: CLIENT, cluster: 'by-host' })
})
