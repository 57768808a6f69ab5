// Amounts of resources as people write them: cpu in cores, bytes with a binary prefix, all else as a number.

/** @import { ResourceUse } from "admin-port" */

const PREFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/**
 * The unit that Kindred holds a resource in.
 * @param {string} resource
 * @returns {ResourceUse["unit"]}
 */
export function unitOf(resource) {
  if (resource === "cpu") return "millicores";
  return /^(memory$|ephemeral-storage$|hugepages-)/.test(resource) ? "bytes" : "count";
}

/**
 * @param {number} amount
 * @param {ResourceUse["unit"]} unit
 */
export function amountText(amount, unit) {
  if (unit === "millicores") return rounded(amount / 1000);
  if (unit === "count") return amount.toLocaleString("en");
  const power = amount ? Math.min(Math.floor(Math.log2(Math.abs(amount)) / 10), PREFIXES.length - 1) : 0;
  return `${rounded(amount / 1024 ** Math.max(power, 0))}${PREFIXES[Math.max(power, 0)]}`;
}

/**
 * Three digits are enough to compare by.
 * @param {number} number
 */
const rounded = (number) =>
  number.toLocaleString("en", { maximumFractionDigits: Math.abs(number) < 10 ? 2 : Math.abs(number) < 100 ? 1 : 0 });

/**
 * How much of what there is is requested; null where there is nothing.
 * @param {number} requested
 * @param {number} allocatable
 */
export const shareOf = (requested, allocatable) => (allocatable > 0 ? requested / allocatable : null);

/**
 * A share in per cent. What is not all of it is never said to be 100 %, nor what is more.
 * @param {number | null} share
 */
export function percent(share) {
  if (share === null) return "none";
  const rounding = Math.round(share * 100);
  if (rounding === 100 && share !== 1) return share < 1 ? "99 %" : "101 %";
  return `${rounding.toLocaleString("en")} %`;
}

/**
 * Time that has passed, in the largest unit of which there is more than one.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 120) return `${Math.max(Math.floor(seconds), 0)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
