// The kubeconfigs of protection in the metrics: when their client certificates expire, and whether their content is in force.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { writeKubeconfig } from '../harness/clusters/kubeconfig.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { waitFor } from '../harness/wait.ts'

test('both have the expiry of their client certificates, a warning, and the result of the last reading', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-kubeconfigs-'))
  const ca = createCA({ commonName: 'workers' })
  // It is valid for a month; a day is left.
  const notBefore = new Date(Date.now() - 29 * 86_400_000)
  const cert = issueCertificate(ca, { commonName: 'portcullis', usage: 'client', notBefore, days: 30 })
  const user = { cert }
  // No server is there: what the files say is known nevertheless.
  const server = 'https://127.0.0.1:1'
  const [core, workloads] = ['core', 'workloads'].map((name) =>
    writeKubeconfig(join(dir, name), { server, ca: ca.certPem, user }),
  )
  const generator = join(dir, 'generator')
  writeFileSync(generator, 'kinds: []\n')
  const flags = {
    configDir: 'given',
    protectionKubeconfig: core,
    protectionWorkloadsKubeconfig: workloads,
    protectionGeneratorConfig: generator,
  }
  const { protection } = loadConfig({ flags, env: {}, readFile: () => '' })
  const gateway = await startInProcess([], { protection })
  try {
    const ends = new X509Certificate(cert.certPem).validToDate.getTime() / 1000
    for (const name of ['protection-kubeconfig', 'protection-workloads-kubeconfig']) {
      const expiry = `portcullis_certificate_expiration_timestamp_seconds{cluster="",certificate="${name}-client"} ${ends}\n`
      await waitFor(expiry, async () => (await gateway.metrics()).includes(expiry))
      const reload = `portcullis_file_last_reload_successful{file="${name}"} 1\n`
      assert.ok((await gateway.metrics()).includes(reload), reload)
      assert.ok(
        gateway.logged.some(
          ({ message, fields }) => /expires soon/.test(message) && fields['certificate'] === `${name}-client`,
        ),
      )
    }
  } finally {
    await gateway.stop()
    rmSync(dir, { recursive: true, force: true })
  }
})
