import { checkCosts } from './check-costs.ts'
import { REQUESTS } from './table.ts'

checkCosts(REQUESTS)
