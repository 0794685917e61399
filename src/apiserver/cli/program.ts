// The command line of `portcullis control`.

import type { Command } from 'commander'
import { collect } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'

/** @param ownKinds that a Kubernetes cluster does not have by itself */
export function addControl(
  program: Command,
  { out, err, now, done }: CommandContext,
  ownKinds: () => Promise<readonly ResourceKind[]>,
): void {
  const control = program.command('control').description("the gateway's own API server (--source embedded)")
  control
    .command('kubeconfig')
    .description('print a kubeconfig for this API server, with a new credential')
    .requiredOption('--data-dir <dir>', '--data-dir of the gateway')
    .requiredOption('--user <user>', 'user name')
    .option('--group <group>', 'portcullis:admins, portcullis:viewers or others; may be repeated', collect, [])
    .option('--server <url>', 'URL of this API server; default: the one in admin.kubeconfig in the data directory')
    .option('--token-ttl <duration>', 'print a token with this validity instead of a client certificate')
    .option('--days <days>', 'validity of the client certificate', Number)
    .action(async ({ group: groups, ...options }) =>
      done((await import('./control.ts')).printControlKubeconfig({ ...options, groups, now, out, err })),
    )
  control
    .command('revoke')
    .description('refuse a user, a certificate or a token from now on; the gateway may be running')
    .requiredOption('--data-dir <dir>', '--data-dir of the gateway')
    .option('--user <user>', 'user name')
    .option('--certificate <file>', 'client certificate (PEM), or a kubeconfig: its current user')
    .option('--token-file <file>', 'bearer token, or a kubeconfig: its current user')
    .option('--credential-id <id>', 'X509SHA256=... or JTI=..., as in audit events')
    .option('--reason <text>', 'recorded with the revocation')
    .option('--undo', 'remove the revocation', false)
    .option('--list', 'list revoked users and credentials', false)
    .option('--force', "revoke even the administrator of the data directory's own kubeconfig", false)
    .option('--store-key-file <file>', '--store-key-file of the gateway; needed while the gateway is stopped')
    .action(async ({ certificate, ...options }) =>
      done((await import('./revoke.ts')).controlRevoke({ ...options, certificateFile: certificate, now, out, err })),
    )
  control
    .command('webhook')
    .description(
      'print the ValidatingWebhookConfiguration that makes the API server of --source kubernetes call the gateway to check objects',
    )
    .requiredOption('--data-dir <dir>', '--data-dir of the gateway')
    .option('--url <url>', 'https://HOST:PORT of --control-listen, as the API server reaches it')
    .option('--service <namespace/name>', 'Service in the cluster, instead of --url')
    .option('--port <port>', 'port of the Service', Number, 9443)
    .action(async (options) => {
      const kinds = await ownKinds()
      return done((await import('./control.ts')).printControlWebhook({ ...options, kinds, out, err }))
    })
  control
    .command('backup')
    .description('copy the store of this API server; the gateway may be running')
    .requiredOption('--data-dir <dir>', '--data-dir of the gateway')
    .argument('<file>', 'the copy; must not exist')
    .action(async (file, { dataDir }) =>
      done((await import('./control.ts')).backupControlStore({ dataDir, file, out, err })),
    )
  control
    .command('rotate-key')
    .description('encrypt the store of this API server with a new key; the gateway must be stopped')
    .requiredOption('--data-dir <dir>', '--data-dir of the gateway')
    .option('--store-key-file <file>', '--store-key-file of the gateway')
    .option('--new-key-file <file>', 'the new key; default: a generated one, which replaces the old one')
    .action(async (options) => done((await import('./control.ts')).rotateKey({ ...options, out, err })))
}
