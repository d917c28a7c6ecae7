import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.PagingIterable;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.mapper.annotations.CqlName;
import com.datastax.oss.driver.api.mapper.annotations.Dao;
import com.datastax.oss.driver.api.mapper.annotations.DaoFactory;
import com.datastax.oss.driver.api.mapper.annotations.DaoKeyspace;
import com.datastax.oss.driver.api.mapper.annotations.Delete;
import com.datastax.oss.driver.api.mapper.annotations.Entity;
import com.datastax.oss.driver.api.mapper.annotations.Increment;
import com.datastax.oss.driver.api.mapper.annotations.Insert;
import com.datastax.oss.driver.api.mapper.annotations.PartitionKey;
import com.datastax.oss.driver.api.mapper.annotations.Select;
import com.datastax.oss.driver.api.mapper.annotations.Update;
import java.util.List;
import java.util.UUID;

/** The object mapper of the Java driver: accounts changed by conditions, and counters. */
public final class Mapper {
  static final int RIVALS = 8, DEPOSITS = 25;

  /** What one person has. */
  @Entity
  public static class Account {
    @PartitionKey private UUID id;
    private String owner;
    private int balance;

    public Account() {}

    Account(UUID id, String owner, int balance) {
      this.id = id;
      this.owner = owner;
      this.balance = balance;
    }

    public UUID getId() { return id; }
    public void setId(UUID id) { this.id = id; }
    public String getOwner() { return owner; }
    public void setOwner(String owner) { this.owner = owner; }
    public int getBalance() { return balance; }
    public void setBalance(int balance) { this.balance = balance; }

    @Override
    public String toString() { return id + " " + owner + " " + balance; }
  }

  /** How often a page was seen, and liked. */
  @Entity
  public static class Page {
    @PartitionKey private String name;
    private long views;
    private long likes;

    public String getName() { return name; }
    public void setName(String name) { this.name = name; }
    public long getViews() { return views; }
    public void setViews(long views) { this.views = views; }
    public long getLikes() { return likes; }
    public void setLikes(long likes) { this.likes = likes; }
  }

  /** Accounts. */
  @Dao
  public interface Accounts {
    /** Null, or the account that was there. */
    @Insert(ifNotExists = true)
    Account open(Account account);

    @Insert(ifNotExists = true)
    boolean openIfNew(Account account);

    @Insert(ifNotExists = true, ttl = ":seconds")
    boolean openFor(Account account, int seconds);

    @Select
    Account find(UUID id);

    @Select
    PagingIterable<Account> all();

    @Update(customIfClause = "balance = :expected")
    boolean update(Account account, int expected);

    /** The row of the answer, to see what was there. */
    @Update(customIfClause = "balance = :expected AND owner IN (:first, :second)")
    ResultSet updateOfOwners(Account account, int expected, String first, String second);

    @Update(ifExists = true)
    boolean updateIfThere(Account account);

    @Delete(ifExists = true)
    boolean close(Account account);

    @Delete(entityClass = Account.class, customIfClause = "balance = :expected")
    ResultSet closeWith(UUID id, int expected);
  }

  /** Pages. */
  @Dao
  public interface Pages {
    @Increment(entityClass = Page.class)
    void addViews(String name, long views);

    @Increment(entityClass = Page.class)
    void add(String name, @CqlName("views") long views, @CqlName("likes") long likes);

    @Select
    Page find(String name);

    @Delete(entityClass = Page.class)
    void forget(String name);
  }

  /** Where the two come from. */
  @com.datastax.oss.driver.api.mapper.annotations.Mapper
  public interface Daos {
    @DaoFactory
    Accounts accounts(@DaoKeyspace CqlIdentifier keyspace);

    @DaoFactory
    Pages pages(@DaoKeyspace CqlIdentifier keyspace);
  }

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  static void conditions(Accounts accounts) {
    Account ada = new Account(UUID.randomUUID(), "ada", 10);
    check(accounts.open(ada) == null, "a new account is made");
    Account there = accounts.open(new Account(ada.getId(), "bob", 99));
    check(there != null, "an account that is there is answered");
    check(there.getOwner().equals("ada") && there.getBalance() == 10, "and is the first one: " + there);
    check(!accounts.openIfNew(ada), "it is not made anew");
    System.out.println("ok: @Insert(ifNotExists = true)");

    ada.setBalance(15);
    check(accounts.update(ada, 10), "the balance is what it must be");
    ada.setBalance(20);
    check(!accounts.update(ada, 10), "it is not what it was");
    check(accounts.find(ada.getId()).getBalance() == 15, "and what was refused is not there");
    ResultSet refused = accounts.updateOfOwners(ada, 15, "bob", "eve");
    check(!refused.wasApplied(), "another owner is refused");
    Row row = refused.one();
    check(!row.getBoolean("[applied]"), "and so says the answer");
    check(row.getInt("balance") == 15 && row.getString("owner").equals("ada"), "the answer has the columns of the IF");
    check(accounts.updateOfOwners(ada, 15, "ada", "eve").wasApplied(), "one of the owners is right");
    Account nobody = new Account(UUID.randomUUID(), "nobody", 1);
    check(!accounts.updateIfThere(nobody), "there is nothing to update");
    check(accounts.find(nobody.getId()) == null, "and nothing is made");
    check(accounts.updateIfThere(ada), "this one is there");
    System.out.println("ok: @Update(customIfClause = …), @Update(ifExists = true)");

    check(!accounts.closeWith(ada.getId(), 1).wasApplied(), "another balance is refused");
    check(accounts.close(ada), "it was there, and is deleted");
    check(!accounts.close(ada), "it is not there any more");
    check(accounts.openIfNew(ada), "it can be made again");
    check(accounts.closeWith(ada.getId(), 20).wasApplied(), "that was its balance");
    check(accounts.find(ada.getId()) == null, "it is gone");
    System.out.println("ok: @Delete(ifExists = true), @Delete(customIfClause = …)");
  }

  static void expiry(Accounts accounts) throws Exception {
    Account eve = new Account(UUID.randomUUID(), "eve", 1);
    check(accounts.openFor(eve, 2), "made for two seconds");
    check(!accounts.openFor(eve, 2), "it is there");
    Thread.sleep(3_000);
    check(accounts.openFor(eve, 60), "it is there no more");
    System.out.println("ok: @Insert(ifNotExists = true, ttl = …)");
  }

  static void rivals(Accounts accounts) throws Exception {
    UUID id = UUID.randomUUID();
    List<Boolean> made = Common.together(RIVALS, () -> accounts.openIfNew(new Account(id, "rival", 0)));
    check(made.stream().filter(one -> one).count() == 1, "one of the rivals makes the account: " + made);
    Common.together(RIVALS, () -> {
      for (int done = 0; done < DEPOSITS; ) {
        Account account = accounts.find(id);
        int before = account.getBalance();
        account.setBalance(before + 1);
        if (accounts.update(account, before)) done++;
      }
      return null;
    });
    int balance = accounts.find(id).getBalance();
    check(balance == RIVALS * DEPOSITS, "every deposit is there: " + balance);
    System.out.println("ok: " + RIVALS + " rivals, " + balance + " deposits");
  }

  static void counters(Pages pages) throws Exception {
    pages.addViews("home", 5);
    pages.addViews("home", -2);
    pages.add("home", 1, 7);
    Page home = pages.find("home");
    check(home.getViews() == 4 && home.getLikes() == 7, "what was added is counted");
    Common.together(RIVALS, () -> {
      for (int i = 0; i < DEPOSITS; i++) pages.add("busy", 1, -2);
      return null;
    });
    Page busy = pages.find("busy");
    check(busy.getViews() == RIVALS * DEPOSITS, "views of all: " + busy.getViews());
    check(busy.getLikes() == -2 * RIVALS * DEPOSITS, "likes of all: " + busy.getLikes());
    pages.forget("home");
    check(pages.find("home") == null, "a deleted counter is not there");
    System.out.println("ok: @Increment, " + busy.getViews() + " at once");
  }

  public static void main(String[] arguments) throws Exception {
    try (CqlSession session = Common.session()) {
      session.execute("DROP KEYSPACE IF EXISTS application_mapper");
      session.execute("CREATE KEYSPACE application_mapper WITH replication = "
          + Common.replication());
      session.execute("CREATE TABLE application_mapper.account (id uuid PRIMARY KEY, owner text, balance int)");
      session.execute("CREATE TABLE application_mapper.page (name text PRIMARY KEY, views counter, likes counter)");
      // The builder is made by the annotation processor.
      Daos daos = new Mapper_DaosBuilder(session).build();
      CqlIdentifier keyspace = CqlIdentifier.fromCql("application_mapper");
      Accounts accounts = daos.accounts(keyspace);
      conditions(accounts);
      rivals(accounts);
      expiry(accounts);
      counters(daos.pages(keyspace));
    }
    System.out.println("ok: all");
  }
}
