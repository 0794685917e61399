// The flags of `portcullis degrade`.

import type { Command } from 'commander'
import { forControlPlane } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import { DEGRADE_MODES } from '../../gateway/api/upstream-cluster/degrade-modes.ts'

export function addDegrade(program: Command, { out, err, now, done }: CommandContext): void {
  forControlPlane(program.command('degrade'))
    .description('set the degrade mode of a cluster, or see where it is in force')
    .argument('<cluster>', 'metadata.name of the UpstreamCluster')
    .option('--mode <mode>', DEGRADE_MODES.join(', '))
    .option('--reason <text>', 'shown in every refusal; required with every mode but Off')
    .option('--ttl <duration>', 'the mode ends by itself after this time')
    .option('--shadow', 'refuse nothing, only count and warn; without this flag shadow mode ends', false)
    .option('--force', 'set the mode even if pods would be evicted, or kubelets or this command cut off', false)
    .option('--status', 'wait until every replica and thread has it in force, and list them', false)
    .option('--recover', 'climb back to Off, a mode at a time, each when its checks have held', false)
    .option('--hold <duration>', 'with --recover: how long the checks of a mode have to hold; default: 60s')
    .option('--ramp <duration>', 'with --recover: how long Limited is held at least; default: 10m')
    .option('--watch', 'with --status: show the steps of a recovery until it is over', false)
    .option(
      '--local',
      'with --source kubernetes: on this machine, while the API server of the objects is away; written to the object later',
      false,
    )
    .option('--off', 'with --local: lift what was set so', false)
    .option('--data-dir <dir>', 'with --local: that of the gateway; default: data')
    .option('--timeout <duration>', 'how long to wait; default: 30s, with --local 5s')
    .action(async (cluster, options) => {
      const given = { ...options, cluster, now, out, err }
      if (options.local) await done((await import('./local.ts')).degradeLocally(given))
      else await done((await import('./degrade.ts')).degradeCommand(given))
    })
}
