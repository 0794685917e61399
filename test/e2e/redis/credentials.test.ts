// Who the gateway is for Redis: TLS with a client certificate, an ACL user with exactly the rights of docs/shared-limits.md, and passwords
// and certificates that change while a gateway runs. No password is in any log, metric or page.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { ACL_RULES } from '../../../src/gateway/io/redis/errors.ts'
import { createCA, issueCertificate, type KeyPair } from '../../../src/pki/io/pki.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { type LimitReplica, startReplica } from '../../harness/gateways/limit-replica.ts'
import { allShare, assertNotSaid, tokenBucket, untilAdmitted } from '../../harness/redis/limit-replicas.ts'
import { type RedisServer, startCluster, startSentinels, type TopologyOptions } from '../../harness/redis/topology.ts'
import { waitFor } from '../../harness/wait.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const SECRET = 'sesame-1'

function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-redis-credentials-'))
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function pairOf(ca: KeyPair, commonName: string): KeyPair {
  const names = { dnsNames: ['redis.example'], ipAddresses: ['127.0.0.1'] }
  return issueCertificate(ca, { commonName, usage: 'server', ...names })
}

/** TLS only, and clients need a certificate. */
function secured(dir: string, ca: KeyPair, server: KeyPair): TopologyOptions {
  writeFileSync(join(dir, 'ca.crt'), ca.certPem)
  writeFileSync(join(dir, 'redis.crt'), server.certPem)
  writeFileSync(join(dir, 'redis.key'), server.keyPem)
  // What servers show each other.
  const client = issueCertificate(ca, { commonName: 'redis', usage: 'client' })
  writeFileSync(join(dir, 'client.crt'), client.certPem)
  writeFileSync(join(dir, 'client.key'), client.keyPem)
  const shown = ['--tls-cert-file', `${dir}/redis.crt`, '--tls-key-file', `${dir}/redis.key`]
  const own = ['--tls-client-cert-file', `${dir}/client.crt`, '--tls-client-key-file', `${dir}/client.key`]
  const args = ['--tls-ca-cert-file', `${dir}/ca.crt`, ...shown, ...own]
  const cli = ['--tls', '--cacert', `${dir}/ca.crt`, '--cert', `${dir}/client.crt`, '--key', `${dir}/client.key`]
  return { tls: true, args, cli }
}

function slots(): ReturnType<typeof tokenBucket> {
  const limit = { max: 9 }
  return { name: 'slots', strategy: 'globalAllocate', maxRequestsInflight: limit, globalMaxRequestsInflight: limit }
}

/** Everything that replicas ask Redis for. */
async function useAll(url: string, options: object): Promise<LimitReplica> {
  const one = startReplica({ url, password: SECRET, ...options }, tokenBucket(100, 100), slots())
  cleanups.push(one.stop)
  await allShare([one])
  one.demand(200)
  await untilAdmitted(100, [one])
  await waitFor('both limits to be shared', () => one.limits.status().limits.every(({ mode }) => mode === 'shared'))
  assert.equal(one.limits.status().lastError, '')
  return one
}

async function denied(servers: readonly RedisServer[]): Promise<string> {
  return (await Promise.all(servers.map((server) => server.cli('acl', 'log')))).join('')
}

describe('an ACL user', { concurrency: false }, () => {
  test('behind Sentinels, over TLS, with users of both: the documented rights are enough', async () => {
    const dir = directory()
    const ca = createCA({ commonName: 'redis CA' })
    const client = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
    // Redis has a certificate, too: replicas and Sentinels show it to each other.
    const redis = await startSentinels(secured(dir, ca, pairOf(ca, 'redis')))
    cleanups.push(redis.stop)
    for (const server of redis.servers) {
      await server.cli('acl', 'setuser', 'gw', 'on', `>${SECRET}`, ...ACL_RULES.server.split(' '))
    }
    for (const sentinel of redis.sentinels) {
      await sentinel.cli('acl', 'setuser', 'watcher', 'on', `>${SECRET}-2`, ...ACL_RULES.sentinel.split(' '))
    }
    const identity = { ca: ca.certPem, cert: client.certPem, key: client.keyPem }
    const sentinelLogin = { sentinelUser: 'watcher', sentinelPassword: `${SECRET}-2` }
    const one = await useAll(redis.url.replace('://', '://gw@'), { ...identity, ...sentinelLogin })
    await one.stop()
    assert.equal(await denied([...redis.servers, ...redis.sentinels]), '')

    const refused = async (options: object, expected: RegExp): Promise<void> => {
      const bad = startReplica({
        url: redis.url.replace('://', '://gw@'),
        password: SECRET,
        ...identity,
        ...sentinelLogin,
        ...options,
      })
      cleanups.push(bad.stop)
      await waitFor('a reason', () => expected.test(bad.limits.status().lastError))
      assert.equal(bad.limits.status().mode, 'parted')
      assertNotSaid([bad], SECRET, 'wrong-word')
    }
    await refused({ password: 'wrong-word' }, /WRONGPASS/)
    await refused({ sentinelPassword: 'wrong-word' }, /sentinel .* because WRONGPASS/)
    await refused({ cert: '', key: '' }, /failed to connect to sentinel/)
    await refused({ ca: createCA({ commonName: 'another' }).certPem }, /certificate/)
    await refused({ serverName: 'elsewhere.example' }, /altnames|certificate/)
    await useAll(redis.url.replace('://', '://gw@'), { ...identity, ...sentinelLogin, serverName: 'redis.example' })
  })

  test('for a Cluster over TLS: the documented rights are enough, and without one of them the log says which is needed', async () => {
    const dir = directory()
    const ca = createCA({ commonName: 'redis CA' })
    const redis = await startCluster({ ...secured(dir, ca, pairOf(ca, 'redis')) })
    cleanups.push(redis.stop)
    const all = async (...rules: readonly string[]): Promise<void> => {
      for (const node of redis.nodes) await node.cli('acl', 'setuser', 'gw', ...rules)
    }
    await all('on', `>${SECRET}`, ...ACL_RULES.cluster.split(' '))
    const client = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
    const one = await useAll(redis.url.replace('://', '://gw@'), {
      ca: ca.certPem,
      cert: client.certPem,
      key: client.keyPem,
    })
    assert.equal(await denied(redis.nodes), '')
    for (const command of ['hset', 'zadd', 'hgetall']) {
      await all(`-${command}`)
      await waitFor('the reason, with what to do', () => {
        const { lastError } = one.limits.status()
        return /NOPERM|ACL|executing the script/.test(lastError) && lastError.includes(ACL_RULES.cluster)
      })
      await all(`+${command}`)
      await waitFor('it to be shared', () => one.limits.status().limits.every(({ mode }) => mode === 'shared'))
      await waitFor('no error', () => one.limits.status().lastError === '')
    }
    assert.ok(one.logged.some(({ error }) => String(error).includes(ACL_RULES.cluster)))
    await all('resetkeys', '~other:*')
    await waitFor('keys to be named', () => one.logged.some(({ error }) => /^NOPERM.* keys /.test(String(error))))
    assertNotSaid([one], SECRET)
  })
})

describe('files that change while a gateway runs', { concurrency: false }, () => {
  const UP = 'portcullis_global_limit_redis_up'
  const LOADED = 'portcullis_file_last_reload_successful{file="redis"}'

  async function says(gateway: TestGateway, name: string, value: number): Promise<void> {
    await waitFor(`${name} ${value}`, async () => (await gateway.metrics()).includes(`\n${name} ${value}\n`))
  }

  test('passwords and certificates, as a mounted Secret exchanges them', async () => {
    const dir = directory()
    const mount = directory()
    let version = 0
    const write = (files: Readonly<Record<string, string>>): void => {
      version++
      mkdirSync(join(mount, `v${version}`))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(mount, `v${version}`, name), text)
      symlinkSync(`v${version}`, join(mount, '..new'))
      renameSync(join(mount, '..new'), join(mount, '..data'))
    }
    const ca = createCA({ commonName: 'redis CA' })
    const client = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
    const files = { password: `${SECRET}\n`, 'ca.crt': ca.certPem, 'tls.crt': client.certPem, 'tls.key': client.keyPem }
    write(files)
    for (const name of Object.keys(files)) symlinkSync(`..data/${name}`, join(mount, name))

    const redis = await startCluster(secured(dir, ca, pairOf(ca, 'redis')))
    cleanups.push(redis.stop)
    const all = async (...command: readonly string[]): Promise<void> => {
      for (const node of redis.nodes) await node.cli(...command)
    }
    await all('acl', 'setuser', 'gw', 'on', `>${SECRET}`, ...ACL_RULES.cluster.split(' '))
    const gateway = await startGateway({
      clusters: [],
      args: [
        `--redis-url=${redis.url.replace('://', '://gw@')}`,
        `--redis-password-file=${mount}/password`,
        `--redis-ca-file=${mount}/ca.crt`,
        `--redis-cert-file=${mount}/tls.crt`,
        `--redis-key-file=${mount}/tls.key`,
      ],
    })
    cleanups.push(async () => void (await gateway.stop()))
    await says(gateway, UP, 1)
    await says(gateway, LOADED, 1)
    assert.match(
      await gateway.metrics(),
      /certificate_expiration_timestamp_seconds\{cluster="",certificate="redis-client"\}/,
    )

    // A wrong one is kept out, with a warning; the connection before goes on.
    write({ ...files, password: 'wrong-word' })
    await says(gateway, LOADED, 0)
    await waitFor('a warning', () => /WRONGPASS.*does not accept the changed credentials/.test(gateway.logs()))
    await says(gateway, UP, 1)
    // So is one that is damaged.
    write({ ...files, password: '' })
    await waitFor('an error', () => /redis-password-file .* is empty/.test(gateway.logs()))
    write({ ...files, 'tls.key': pairOf(ca, 'another').keyPem })
    await waitFor('an error', () => /redis-key-file .* does not belong to/.test(gateway.logs()))
    await says(gateway, UP, 1)

    // The file first, Redis later; then the old password and the connections that were opened with it are gone.
    write({ ...files, password: `${SECRET}-next` })
    await waitFor('a try', async () => (await redis.nodes[0]?.cli('acl', 'log'))?.includes('gw') === true)
    await all('acl', 'setuser', 'gw', `>${SECRET}-next`)
    await waitFor('it to be used', () => /Redis has accepted the changed credentials/.test(gateway.logs()))
    await says(gateway, LOADED, 1)
    await all('acl', 'setuser', 'gw', `<${SECRET}`)
    await all('client', 'kill', 'user', 'gw')
    await says(gateway, UP, 1)

    // Another CA, with both trusted meanwhile.
    const next = createCA({ commonName: 'the next redis CA' })
    const both = ca.certPem + next.certPem
    write({ ...files, password: `${SECRET}-next`, 'ca.crt': both })
    const accepted = (): number => gateway.logs().split('has accepted the changed credentials').length - 1
    await waitFor('it to be used', () => accepted() === 2)

    const page = (await gateway.admin('/debug/config')).text
    assert.equal(JSON.parse(page).globalLimits.node, `127.0.0.1:${(await redis.owner()).port}`)
    const everything = [gateway.logs(), await gateway.metrics(), page].join('\n')
    for (const secret of [SECRET, 'wrong-word']) assert.ok(!everything.includes(secret), secret)
  })
})
