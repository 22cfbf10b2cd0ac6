// Browser tests are named *.browser.ts, so that `npm test` leaves them out. `scripts/viewer browser BUILD` runs them.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/**/*.browser.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // All files beside each other: a test waits for its browser most of the time.
    poolOptions: { forks: { minForks: 1, maxForks: 4 } },
  },
});
