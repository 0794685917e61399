// Loaded before every unit test: properties are checked with the same inputs each time, so that a red run is red again.
// `PROPERTY_SEED=$RANDOM npm run test:unit` explores others.

import process from 'node:process'
import fc from 'fast-check'

const DEFAULT_SEED = 20_261_121

fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? DEFAULT_SEED) })
