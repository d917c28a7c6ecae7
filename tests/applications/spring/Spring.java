import com.datastax.oss.driver.api.core.CqlSession;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.cassandra.core.CassandraTemplate;
import org.springframework.data.cassandra.core.DeleteOptions;
import org.springframework.data.cassandra.core.EntityWriteResult;
import org.springframework.data.cassandra.core.InsertOptions;
import org.springframework.data.cassandra.core.UpdateOptions;
import org.springframework.data.cassandra.core.WriteResult;
import org.springframework.data.cassandra.core.mapping.Table;
import org.springframework.data.cassandra.core.query.Criteria;
import org.springframework.data.cassandra.core.query.Query;
import org.springframework.data.cassandra.core.query.Update;
import org.springframework.data.cassandra.repository.CassandraRepository;
import org.springframework.data.cassandra.repository.support.CassandraRepositoryFactory;

/** Spring Data Cassandra: entities with a version, saved by several at once, and a counter. */
public final class Spring {
  static final String KEYSPACE = "application_spring";
  static final int RIVALS = 8, CHANGES = 20;

  /** An order whose version every change moves on. */
  @Table("purchase")
  public static class Purchase {
    @Id private String id;
    @Version private Long version;
    private String state;
    private int items;

    public Purchase() {}

    Purchase(String id, String state, int items) {
      this.id = id;
      this.state = state;
      this.items = items;
    }

    public String getId() { return id; }
    public void setId(String id) { this.id = id; }
    public Long getVersion() { return version; }
    public void setVersion(Long version) { this.version = version; }
    public String getState() { return state; }
    public void setState(String state) { this.state = state; }
    public int getItems() { return items; }
    public void setItems(int items) { this.items = items; }
  }

  /** Somebody, without a version. */
  @Table("person")
  public static class Person {
    @Id private String id;
    private int age;

    public Person() {}

    Person(String id, int age) {
      this.id = id;
      this.age = age;
    }

    public String getId() { return id; }
    public void setId(String id) { this.id = id; }
    public int getAge() { return age; }
    public void setAge(int age) { this.age = age; }
  }

  /** A page that is counted. */
  @Table("page")
  public static class Page {
    @Id private String id;
    private long views;

    public String getId() { return id; }
    public void setId(String id) { this.id = id; }
    public long getViews() { return views; }
    public void setViews(long views) { this.views = views; }
  }

  /** What Spring makes of it writes purchases. */
  public interface Purchases extends CassandraRepository<Purchase, String> {}

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError("failed: " + what);
  }

  /** Whether it is refused because somebody else was faster. */
  static boolean stale(Runnable work) {
    try {
      work.run();
      return false;
    } catch (OptimisticLockingFailureException refused) {
      return true;
    }
  }

  static void versions(CassandraTemplate template) {
    Purchase mine = template.insert(new Purchase("a", "new", 1));
    check(mine.getVersion() == 0, "the first version: " + mine.getVersion());
    check(stale(() -> template.insert(new Purchase("a", "other", 9))), "it can not be inserted again");
    Purchase theirs = template.selectOneById("a", Purchase.class);
    check(theirs.getVersion() == 0 && theirs.getState().equals("new"), "it is read as it was inserted");

    mine.setState("paid");
    mine = template.update(mine);
    check(mine.getVersion() == 1, "the second version: " + mine.getVersion());
    theirs.setState("cancelled");
    Purchase old = theirs;
    // In this order: an update that is refused has moved the version of its object on.
    check(stale(() -> template.delete(old)), "a stale delete is refused");
    check(stale(() -> template.update(old)), "a stale update is refused");
    Purchase found = template.selectOneById("a", Purchase.class);
    check(found.getVersion() == 1 && found.getState().equals("paid"), "and changes nothing");
    template.delete(found);
    check(template.selectOneById("a", Purchase.class) == null, "that of the right version deletes");
    check(stale(() -> template.update(found)), "what is deleted can not be updated");
    check(template.selectOneById("a", Purchase.class) == null, "and is not made by that");
    System.out.println("ok: @Version");
  }

  static void repository(CassandraTemplate template) {
    Purchases purchases = new CassandraRepositoryFactory(template).getRepository(Purchases.class);
    Purchase mine = purchases.save(new Purchase("b", "new", 1));
    Purchase theirs = purchases.findById("b").get();
    mine.setItems(2);
    mine = purchases.save(mine);
    check(mine.getVersion() == 1, "saved as the second version");
    check(stale(() -> purchases.save(theirs)), "a stale save is refused");
    check(purchases.findById("b").get().getItems() == 2, "what was saved is there");
    // Of any version: a repository deletes by the key alone.
    purchases.delete(mine);
    check(purchases.findById("b").isEmpty(), "it is deleted");
    System.out.println("ok: save and delete of a repository");
  }

  static void rivals(CassandraTemplate template) throws Exception {
    template.insert(new Purchase("c", "new", 0));
    Common.together(RIVALS, () -> {
      for (int done = 0; done < CHANGES; ) {
        Purchase one = template.selectOneById("c", Purchase.class);
        one.setItems(one.getItems() + 1);
        if (!stale(() -> template.update(one))) done++;
      }
      return null;
    });
    Purchase found = template.selectOneById("c", Purchase.class);
    check(found.getItems() == RIVALS * CHANGES, "every change is there: " + found.getItems());
    check(found.getVersion() == RIVALS * CHANGES, "and has its version: " + found.getVersion());
    System.out.println("ok: " + RIVALS + " rivals, " + found.getVersion() + " versions");
  }

  static void conditions(CassandraTemplate template) {
    InsertOptions ifNew = InsertOptions.builder().withIfNotExists().build();
    check(template.insert(new Person("ada", 36), ifNew).wasApplied(), "somebody new");
    EntityWriteResult<Person> refused = template.insert(new Person("ada", 1), ifNew);
    check(!refused.wasApplied(), "she is there");
    check(refused.getRows().get(0).getInt("age") == 36, "and the answer has her row");
    UpdateOptions ifThere = UpdateOptions.builder().withIfExists().build();
    check(!template.update(new Person("bob", 5), ifThere).wasApplied(), "nobody to update");
    UpdateOptions ifAge = UpdateOptions.builder().ifCondition(Criteria.where("age").is(36)).build();
    check(template.update(new Person("ada", 37), ifAge).wasApplied(), "she had that age");
    check(!template.update(new Person("ada", 38), ifAge).wasApplied(), "she has another one");
    DeleteOptions ifOld = DeleteOptions.builder().ifCondition(Criteria.where("age").gt(40)).build();
    check(!template.delete(new Person("ada", 0), ifOld).wasApplied(), "she is not that old");
    DeleteOptions ifIn = DeleteOptions.builder().ifCondition(Criteria.where("age").in(36, 37)).build();
    WriteResult deleted = template.delete(new Person("ada", 0), ifIn);
    check(deleted.wasApplied(), "one of the ages is hers");
    check(template.count(Person.class) == 0, "nobody is left");
    System.out.println("ok: withIfNotExists, withIfExists, ifCondition");
  }

  static void counter(CassandraTemplate template) throws Exception {
    Query start = Query.query(Criteria.where("id").is("start"));
    Common.together(RIVALS, () -> {
      for (int i = 0; i < CHANGES; i++) template.update(start, Update.empty().increment("views", 2), Page.class);
      return null;
    });
    template.update(start, Update.empty().decrement("views", 1), Page.class);
    Page page = template.selectOneById("start", Page.class);
    check(page.getViews() == 2 * RIVALS * CHANGES - 1, "all was counted: " + page.getViews());
    System.out.println("ok: increment, decrement");
  }

  public static void main(String[] arguments) throws Exception {
    try (CqlSession session = Common.session()) {
      session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
      session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = "
          + Common.replication());
      session.execute("USE " + KEYSPACE);
      session.execute("CREATE TABLE purchase (id text PRIMARY KEY, version bigint, state text, items int)");
      session.execute("CREATE TABLE person (id text PRIMARY KEY, age int)");
      session.execute("CREATE TABLE page (id text PRIMARY KEY, views counter)");
      CassandraTemplate template = new CassandraTemplate(session);
      versions(template);
      repository(template);
      rivals(template);
      conditions(template);
      counter(template);
    }
    System.out.println("ok: all");
  }
}
