// The flags of `portcullis degrade`.

import type { Command } from 'commander'
import { forChanges } from '../../cli/command/flags.ts'
import { type CommandContext, NO_TERMINAL, type Terminal } from '../../cli/command/output.ts'
import { DEGRADE_MODES } from '../../gateway/api/upstream-cluster/degrade-modes.ts'

interface DegradeContext extends CommandContext {
  readonly terminal?: Terminal
}

export function addDegrade(program: Command, { out, err, now, done, terminal = NO_TERMINAL }: DegradeContext): void {
  forChanges(program.command('degrade'))
    .description('set the degrade mode of clusters, or show where it is in force')
    .option('--mode <mode>', DEGRADE_MODES.join(', '))
    .option('--reason <text>', 'text shown in every refusal; required with every mode but Off')
    .option('--ttl <duration>', 'the mode ends by itself after this time')
    .option(
      '--shadow',
      'only count and warn, and refuse nothing; setting a mode without this flag ends shadow mode',
      false,
    )
    .option(
      '--force',
      'set the mode even if pods would be evicted, or kubelets or this command would be cut off',
      false,
    )
    .option('--status', 'wait until every replica and thread has it in force, and list them', false)
    .option('--recover', 'go back to Off, one mode at a time, each when the checks of the mode before have held', false)
    .option('--hold <duration>', 'with --recover: how long the checks of a mode must hold; default: 60s')
    .option('--ramp <duration>', 'with --recover: how long to stay at Limited, at least; default: 10m')
    .option('--watch', 'with --status: show the steps of a recovery until it is over', false)
    .option(
      '--local',
      'with --source kubernetes: set the mode on this machine, while the API server that holds the objects is unavailable; the gateway writes it to the object later',
      false,
    )
    .option('--off', 'with --local: lift the local mode', false)
    .option('--data-dir <dir>', 'with --local: --data-dir of the gateway; default: data')
    .option('--timeout <duration>', 'how long to wait; default: 30s, with --local 5s')
    .action(async (clusters, { dryRun, ...options }) => {
      const { onlyCluster } = await import('../../cli/client/chosen-clusters.ts')
      const cluster = onlyCluster({ ...options, clusters })
      const given = { ...options, now, out, err }
      if (cluster !== undefined && options.local) {
        await done((await import('./local.ts')).degradeLocally({ ...given, cluster }))
      } else if (cluster !== undefined && !dryRun) {
        await done((await import('./degrade.ts')).degradeCommand({ ...given, cluster }))
      } else {
        const { degradeMany } = await import('./many.ts')
        await done(degradeMany({ ...given, clusters, dryRun, ask: terminal.ask }))
      }
    })
}
