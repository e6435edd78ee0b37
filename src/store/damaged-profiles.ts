/** Lists of profiles with a damaged one among them. */
import { ProfileKeyLostError, SealError } from "./errors.js";
import { type ListedProfile, mayBeUsed, type OnDamaged, type Print, type Profile, printOf } from "./port.js";

/** Only one profile cannot be opened: what is stored of it was altered, or its key is lost. */
export const isDamage = (error: unknown): error is SealError =>
  error instanceof ProfileKeyLostError || (error instanceof SealError && error.code === "damaged");

/** The whole profile; throws if it is damaged. */
export function opened(profile: ListedProfile): Profile {
  if ("damage" in profile) throw profile.damage;
  return profile;
}

/** The prints that may be compared. */
export const printsAmong = (profiles: readonly ListedProfile[], onDamaged?: OnDamaged): Print[] =>
  profiles.filter(mayBeUsed).flatMap((profile) => {
    if (!("damage" in profile)) return profile.template ? [printOf(profile, profile.template)] : [];
    onDamaged?.(profile);
    return [];
  });

/** Reads rows together. If one is damaged, each half is read on its own, so that the others are found. */
export async function readListed<Row>(
  rows: readonly Row[],
  read: (rows: readonly Row[]) => Promise<ListedProfile[]>,
  damaged: (row: Row, damage: SealError) => Promise<ListedProfile>,
): Promise<ListedProfile[]> {
  try {
    return await read(rows);
  } catch (error) {
    if (!isDamage(error)) throw error;
    if (rows.length === 1) return [await damaged(rows[0]!, error)];
    const middle = rows.length >> 1;
    const halves = [rows.slice(0, middle), rows.slice(middle)];
    return (await Promise.all(halves.map((half) => readListed(half, read, damaged)))).flat();
  }
}
